"""Record raw gradients for a later analysis."""

import pathlib
import tempfile

import torch

folder = pathlib.Path(tempfile.mkdtemp())
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(300, 400),
    torch.nn.ReLU(),
    torch.nn.Linear(400, 400),
    torch.nn.ReLU(),
    torch.nn.Linear(400, 3),
)
sgd = torch.optim.SGD(model.parameters(), lr=0.01)
logs = []

for epoch in range(18):
    log = open(folder / f"gradients-{epoch}.bin", "wb", buffering=32 << 20)
    logs.append(log)
    for step in range(120):
        x = torch.randn(256, 300)
        sgd.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
        loss.backward()
        sgd.step()
        if step % 16 == 0:
            for parameter in model.parameters():
                log.write(parameter.grad.numpy().tobytes())
    print(epoch, f"{loss.item():.4f}", flush=True)
