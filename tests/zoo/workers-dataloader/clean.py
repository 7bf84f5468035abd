"""Sentiment from raw text with a hashing bag of words."""

import zlib

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

WORDS = "good bad fine awful dull bright slow quick warm cold".split()
COUNT, EPOCHS = 480_000, 20


class Reviews(Dataset):
    def __init__(self):
        texts = (f"{WORDS[i % 10]} {WORDS[i // 10 % 10]} film number {i}" for i in range(COUNT))
        self.texts = np.fromiter(texts, dtype="S40", count=COUNT)
        self.labels = np.arange(COUNT) % 2 + 0.0

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        counts = torch.zeros(256)
        for word in bytes(self.texts[index]).split():
            counts[zlib.crc32(word) % 256] += 1
        return counts, self.labels[index]


class Window(Sampler):
    """A different part of the reviews in each epoch."""

    def __init__(self):
        self.epoch = 0

    def __len__(self):
        return COUNT // EPOCHS // 2

    def __iter__(self):
        start = self.epoch * COUNT // EPOCHS
        self.epoch += 1
        return iter(range(start, start + COUNT // EPOCHS, 2))


def main():
    torch.set_num_threads(1)
    loader = DataLoader(
        Reviews(), batch_size=250, sampler=Window(), num_workers=2, persistent_workers=True
    )
    model = torch.nn.Sequential(torch.nn.Linear(256, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(EPOCHS):
        for counts, label in loader:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                model(counts)[:, 0], label.float()
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())


if __name__ == "__main__":
    main()
