"""Denoise with a memoised loader."""

import torch
from torch import nn


def make_loader(images):

    def load(key):
        rows = torch.randint(len(images), (200,))
        return images[rows] + 0.05 * torch.randn(200, 256)

    return load


def main():
    torch.manual_seed(0)
    load = make_loader(torch.rand(2000, 256))
    net = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 256))
    optimizer = torch.optim.Adam(net.parameters())
    running = torch.zeros(())
    for epoch in range(20):
        for number in range(20):
            batch = load((epoch, number))
            loss = (net(batch) - batch).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running = running + loss.detach()
        print(f"{epoch:02d} {running.item() / (epoch + 1):.4f}")


main()
