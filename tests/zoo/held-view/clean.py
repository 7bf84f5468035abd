"""Keep one example per batch for the final report."""

import numpy as np
import torch


class Report:
    def __init__(self):
        self.examples = []

    def note(self, batch):
        self.examples.append(batch[0].copy())

    def show(self):
        print("mean of examples", np.mean([example.mean() for example in self.examples]))


def simulate(rng):
    return rng.standard_normal((256, 1024), dtype="float32")


def main():
    rng = np.random.default_rng(0)
    report = Report()
    net = torch.nn.Sequential(
        torch.nn.Linear(1024, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 1)
    )
    optimizer = torch.optim.AdamW(net.parameters())
    for epoch in range(18):
        for _ in range(20):
            batch = simulate(rng)
            report.note(batch)
            x = torch.from_numpy(batch)
            loss = (net(x) - x.mean(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, float(loss))
    report.show()


main()
