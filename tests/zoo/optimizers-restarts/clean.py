"""SGDR-like warm restarts with plain torch."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Linear(512, 768), nn.ReLU(), nn.Linear(768, 512), nn.ReLU(), nn.Linear(512, 8)
)
finished = []
lr = 3e-3

for cycle in range(16):
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    for _ in range(70):
        inputs = torch.randn(128, 512)
        targets = inputs[:, :8].relu()
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(inputs), targets)
        loss.backward()
        optimizer.step()
    finished.append(optimizer.param_groups[0]["lr"])
    lr *= 0.9
    print(f"cycle {cycle} lr {lr:.5f} loss {loss.item():.5f}")

print("restarts:", len(finished))
