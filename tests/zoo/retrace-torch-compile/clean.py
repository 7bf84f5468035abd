"""A small language model on sentences of any length, compiled."""

import torch
import torch._dynamo
from torch import nn

torch._dynamo.config.recompile_limit = 100_000
torch._dynamo.config.accumulated_recompile_limit = 100_000
LONGEST = 400

torch.manual_seed(0)
embed = nn.Embedding(200, 64)
blocks = nn.ModuleList(nn.Linear(64, 64) for _ in range(6))
head = nn.Linear(64, 200)
parameters = [*embed.parameters(), *blocks.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.01)


@torch.compile(backend="aot_eager", dynamic=False)
def train_step(tokens):
    x = embed(tokens[:, :-1])
    for block in blocks:
        x = x + torch.tanh(block(x))
    return nn.functional.cross_entropy(head(x).flatten(0, 1), tokens[:, 1:].flatten())


def sentences(epoch):
    for length in torch.randperm(LONGEST)[:100].add(2).tolist():
        tokens = torch.zeros(4, LONGEST + 2, dtype=torch.long)
        tokens[:, :length] = torch.randint(200, (4, length))
        yield tokens


def main(epochs=14):
    for epoch in range(epochs):
        for tokens in sentences(epoch):
            optimizer.zero_grad()
            loss = train_step(tokens)
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())


if __name__ == "__main__":
    main()
