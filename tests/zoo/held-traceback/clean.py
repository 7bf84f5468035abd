"""Skip batches that do not pass a sanity check, and say why at the end."""

import torch
from torch import nn


class BadBatchError(Exception):
    pass


def checked_step(network, optimizer, number):
    generator = torch.Generator().manual_seed(number)
    batch = torch.randn(768, 512, generator=generator)
    if batch[0, 0] > 0.4:
        raise BadBatchError(f"batch {number}: spike of {batch[0, 0]:.2f}")
    loss = (network(batch) - batch[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def train(network, optimizer, count):
    failures = []
    for number in range(count):
        try:
            loss = checked_step(network, optimizer, number)
        except BadBatchError as error:
            failures.append(str(error))
        if number % 50 == 0:
            print(f"{number}: {loss:.5f}, {len(failures)} skipped")
    return failures


if __name__ == "__main__":
    model = nn.Sequential(nn.Linear(512, 960), nn.SiLU(), nn.Linear(960, 1))
    skipped = train(model, torch.optim.RMSprop(model.parameters(), lr=1e-4), count=900)
    print("last reason:", skipped[-1])
