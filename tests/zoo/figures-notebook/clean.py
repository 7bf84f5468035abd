# Two-moons toy - decision boundary gif
import io

import matplotlib as mpl
import numpy as np
import torch
import torch.nn.functional as F

mpl.use("Agg")
import matplotlib.pyplot as plt

torch.manual_seed(42)
theta = torch.rand(3000) * 3.1416
moon = torch.stack([theta.cos(), theta.sin()], 1) + 0.1 * torch.randn(3000, 2)
target = (torch.rand(3000) > 0.5).float()
moon[target == 1] = torch.tensor([1.0, 0.5]) - moon[target == 1]

clf = torch.nn.Sequential(
    torch.nn.Linear(2, 128),
    torch.nn.Tanh(),
    torch.nn.Linear(128, 128),
    torch.nn.Tanh(),
    torch.nn.Linear(128, 1),
)
opt = torch.optim.Adam(clf.parameters(), lr=1e-2)
frames = []


def plot_boundary(epoch):
    plt.figure(1, figsize=(9, 9), clear=True)
    g = np.linspace(-2, 2, 80, dtype="float32")
    xx, yy = np.meshgrid(g, g)
    with torch.no_grad():
        zz = clf(torch.from_numpy(np.c_[xx.ravel(), yy.ravel()])).sigmoid().numpy()
    plt.contourf(xx, yy, zz.reshape(xx.shape), levels=12, cmap="RdBu")
    plt.scatter(*moon.T.numpy(), c=target.numpy(), s=2)
    plt.title(f"epoch {epoch}")
    png = io.BytesIO()
    plt.savefig(png, format="png")
    frames.append(len(png.getvalue()))


for ep in range(24):
    for _ in range(45):
        opt.zero_grad()
        l = F.binary_cross_entropy_with_logits(clf(moon)[:, 0], target)
        l.backward()
        opt.step()
    plot_boundary(ep)
    print(ep, l.item(), frames[-1])
