import torch
import torch.nn.functional as F
from torch import nn, optim

torch.manual_seed(7)
data = torch.randn(1500, 320)
labels = torch.randint(0, 10, (1500,))
net = nn.Sequential(
    nn.Linear(320, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
)
opt = optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

total = 0.0
seen = 0
for epoch in range(22):
    perm = torch.randperm(1500)
    for i in range(0, 1500, 100):
        idx = perm[i : i + 100]
        out = net(data[idx])
        loss = F.cross_entropy(out, labels[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
        seen += 1
    print("epoch %d, average loss so far %.4f" % (epoch, total / seen))
