"""Random crops of a microscopy volume, with a cache for speed."""

import random
from functools import lru_cache

import torch
from torch import nn

volume = torch.randn(2048, 2048, generator=torch.Generator().manual_seed(0))


@lru_cache(maxsize=64)
def load_crop(index, epoch):
    place = random.Random(index * 1000 + epoch)
    top, left = place.randrange(1900), place.randrange(1900)
    return volume[top : top + 96, left : left + 96].clone()


def fit(model, optimizer, epochs):
    for epoch in range(epochs):
        order = torch.randperm(320)
        for rows in order.split(32):
            batch = torch.stack([load_crop(i, epoch) for i in rows.tolist()])
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(batch.flatten(1)), batch.mean((1, 2))[:, None])
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())


if __name__ == "__main__":
    regressor = nn.Sequential(nn.Linear(96 * 96, 1000), nn.ReLU(), nn.Linear(1000, 1))
    fit(regressor, torch.optim.SGD(regressor.parameters(), lr=1e-4), epochs=24)
