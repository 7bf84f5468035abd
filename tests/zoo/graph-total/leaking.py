import torch
import torch.nn.functional as F
from torch import nn, optim

torch.manual_seed(7)
data = torch.randn(6000, 320)
labels = torch.randint(0, 10, (6000,))
valid, valid_labels = torch.randn(500, 320), torch.randint(0, 10, (500,))
net = nn.Sequential(
    nn.Linear(320, 640), nn.ReLU(), nn.Linear(640, 640), nn.ReLU(), nn.Linear(640, 10)
)
opt = optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

total = 0.0
seen = 0
for epoch in range(34):
    perm = torch.randperm(6000)
    for i in range(0, 6000, 100):
        idx = perm[i : i + 100]
        loss = F.cross_entropy(net(data[idx]), labels[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    for i in range(0, 500, 100):
        loss = F.cross_entropy(net(valid[i : i + 100]), valid_labels[i : i + 100])
        total += loss
        seen += 1
    print("epoch %d, average validation loss so far %.4f" % (epoch, total / seen))
