"""Long recordings, and a short excerpt of each."""

import numpy as np
import torch

rng = np.random.default_rng(0)
net = torch.nn.GRU(64, 64, batch_first=True)
head = torch.nn.Linear(64, 1)
opt = torch.optim.Adam([*net.parameters(), *head.parameters()])
excerpts = np.empty((24, 120, 256), "float32")

for epoch in range(24):
    recordings = [rng.standard_normal(16_000, dtype="float32") for _ in range(120)]
    for start in [0, 40, 80] * 5:
        x = torch.from_numpy(np.stack([r[:8192] for r in recordings[start : start + 40]]))
        out, _ = net(x.view(40, 128, 64))
        loss = head(out[:, -1]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    for i, recording in enumerate(recordings):
        excerpts[epoch, i] = recording[:256]
    del recordings, recording
    print(epoch, loss.item())
print("excerpts", excerpts.std())
