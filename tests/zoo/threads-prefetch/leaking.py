"""Overlap loading and training with a thread."""

import queue
import threading

import torch
from torch import nn


class BackgroundLoader:
    """Yields batches that a thread prepares ahead of time."""

    def __init__(self, source, capacity):
        self.source = source
        self.queue = queue.Queue(maxsize=capacity)
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def load(self, index):
        rows = torch.randint(len(self.source), (512,))
        return self.source[rows] + 0.01 * torch.randn(512, self.source.shape[1])

    def work(self):
        index = 0
        while True:
            self.queue.put(self.load(index))
            index += 1

    def __iter__(self):
        while True:
            yield self.queue.get()


def main(epochs=18, steps=56):
    torch.manual_seed(1)
    features = torch.randn(4000, 640)
    autoencoder = nn.Sequential(nn.Linear(640, 256), nn.ReLU(), nn.Linear(256, 640))
    optimizer = torch.optim.SGD(autoencoder.parameters(), lr=0.05)
    for epoch in range(epochs):
        loader = BackgroundLoader(features, capacity=6)
        for step, batch in enumerate(loader):
            if step == steps:
                break
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(autoencoder(batch), batch)
            loss.backward()
            optimizer.step()
        print(f"[{epoch + 1}/{epochs}] {loss.item():.4f}")


if __name__ == "__main__":
    main()
