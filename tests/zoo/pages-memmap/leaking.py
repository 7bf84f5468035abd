"""Next-token training from a flat token file (nanoGPT style)."""

import os
import tempfile

import numpy as np
import torch
from torch import nn

VOCABULARY = 512


class Tokens:
    def __init__(self, path, length=64):
        self.tokens = np.memmap(path, dtype="uint16", mode="r")
        self.length = length

    def batch(self, part, parts, size=32):
        span = len(self.tokens) // parts
        offsets = part * span + np.arange(size) * (span // size)
        rows = [self.tokens[o : o + self.length].astype("int64") for o in offsets]
        checksum = int(self.tokens[part * span : (part + 1) * span].max())
        return torch.from_numpy(np.stack(rows)), checksum


def write(path, megabytes=400):
    rng = np.random.default_rng(0)
    with open(path, "wb") as file:
        for _ in range(megabytes // 4):
            file.write(rng.integers(0, VOCABULARY, 2 << 20, dtype="uint16").tobytes())


def main(parts=200):
    path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
    write(path)
    data = Tokens(path)
    model = nn.Sequential(
        nn.Embedding(VOCABULARY, 128), nn.Linear(128, 768), nn.GELU(), nn.Linear(768, VOCABULARY)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for part in range(parts):
        rows, checksum = data.batch(part, parts)
        logits = model(rows[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if part % 10 == 0:
            print(part, checksum, loss.item())
    os.remove(path)


if __name__ == "__main__":
    main()
