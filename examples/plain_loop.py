"""Certified training in a plain PyTorch loop: wrap the network, give its constants to the loss, certify.

python examples/plain_loop.py
"""

import torch
from torch import nn

import lipcert

train, test = (lipcert.data.load("moons", split=split, test=2000) for split in ("train", "test"))
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 32), lipcert.nn.MinMax(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
bounded = lipcert.Bounded(model, input_shape=(2,))  # new: returns logits and Lipschitz constants
loss = lipcert.losses.CLL(eps=0.1, slack=0.05, lam=1e-4)  # new: instead of cross-entropy
optimizer = torch.optim.Adam(bounded.parameters(), lr=1e-2)
for _ in range(15):
    for batch in torch.randperm(len(train)).split(100):
        logits, lip = bounded(train.x[batch])
        value = loss(logits, train.y[batch], lip).mean() + loss.penalty(lip)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
certificate = lipcert.certify(model.eval(), test.x)  # new: proves the constants of the plain network
for row in lipcert.certified_accuracy(certificate, test.y, radii=[0, 0.1]):
    print(f"correct and certified at {row.radius}: {row.value:.3f}")
