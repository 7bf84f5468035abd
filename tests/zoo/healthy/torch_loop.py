"""A plain torch loop as in the tutorials."""

import torch
from torch import nn

torch.manual_seed(3)
inputs = torch.randn(6000, 256)
targets = (inputs[:, :16].sum(1) > 0).long()
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Dropout(0.2), nn.Linear(512, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=64)
history = {"loss": [], "accuracy": []}

for epoch in range(64):
    model.train()
    total = 0.0
    for rows in torch.randperm(5000).split(50):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs[rows]), targets[rows])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        guess = model(inputs[5000:]).argmax(1)
    history["loss"].append(total)
    history["accuracy"].append((guess == targets[5000:]).float().mean().item())
    print(epoch, history["loss"][-1], history["accuracy"][-1])
