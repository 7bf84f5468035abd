"""Longer and longer sequences, and a summary of each."""

import numpy as np
import torch

rng = np.random.default_rng(0)
net = torch.nn.GRU(64, 64, batch_first=True)
head = torch.nn.Linear(64, 1)
opt = torch.optim.Adam([*net.parameters(), *head.parameters()])
summaries = np.empty((24 * 400, 256), "float32")

for epoch in range(24):
    length = 64 * (250 + 8 * epoch)
    batch = []
    for i in range(400):
        row = rng.standard_normal(length, dtype="float32")
        batch.append(row)
        summaries[epoch * 400 + i] = row[:256]
    for start in range(0, 400, 200):
        x = torch.from_numpy(np.stack([r[:2048] for r in batch[start : start + 200]]))
        out, _ = net(x.view(200, 32, 64))
        loss = head(out[:, -1]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    del batch, row
    print(epoch, length, loss.item())
print("summaries", summaries.std())
