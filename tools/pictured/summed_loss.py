"""A loop of torch that sums the losses of a validation set. Argument: `tensor` or `number`."""

import sys

import torch

net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
optimizer = torch.optim.Adam(net.parameters())
total = 0.0
for _ in range(2500):
    x, held_out = torch.rand(256, 64), torch.rand(256, 64)
    optimizer.zero_grad()
    ((net(x) - x.sum(1, keepdim=True)) ** 2).mean().backward()
    optimizer.step()
    loss = ((net(held_out) - held_out.sum(1, keepdim=True)) ** 2).mean()
    total += loss if sys.argv[1] == "tensor" else loss.item()
