"""The same loop with Lightning Fabric, which brings devices, precision and processes.

python examples/fabric_loop.py
"""

import torch
from lightning_fabric import Fabric
from torch import nn

import lipcert

fabric = Fabric(accelerator="cpu", devices=1)
fabric.launch()
fabric.seed_everything(0, verbose=False)
data = lipcert.data.load("moons")
model = nn.Sequential(nn.Linear(2, 32), lipcert.nn.MinMax(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
bounded = lipcert.Bounded(model, input_shape=(2,))
loss = lipcert.losses.CLL(eps=0.1, slack=0.05, lam=1e-4)
network, optimizer = fabric.setup(bounded, torch.optim.Adam(bounded.parameters(), lr=1e-2))
loader = torch.utils.data.DataLoader(list(zip(data.x, data.y, strict=True)), batch_size=100, shuffle=True)
for _ in range(15):
    for x, y in fabric.setup_dataloaders(loader):
        logits, lip = network(x)
        optimizer.zero_grad()
        fabric.backward(loss(logits, y, lip).mean() + loss.penalty(lip))
        optimizer.step()
certificate = lipcert.certify(model.eval(), data.x)
print(f"certified at 0.1: {lipcert.certified_accuracy(certificate, data.y, [0.1])[0].value:.3f}")
