"""Train on two moons in a loop of your own, certify, draw: everything in sight.

python examples/train_moons.py moons.png
"""

import sys

import matplotlib.pyplot as plt
import torch

import lipcert

torch.manual_seed(1)
train, test = lipcert.data.load("moons"), lipcert.data.load("moons", split="test", test=2000)
model = lipcert.models.create("mlp", num_classes=2, input_shape=(2,))
bounded = lipcert.Bounded(model, input_shape=(2,))  # returns logits and Lipschitz constants
loss = lipcert.losses.CLL(eps=0.15, slack=0.01, lam=1e-6, sides="one")
optimizer = torch.optim.Adam(bounded.parameters(), lr=1e-2)
for _ in range(15):
    for batch in torch.randperm(len(train)).split(100):
        logits, lip = bounded(train.x[batch])
        value = loss(logits, train.y[batch], lip).mean() + loss.penalty(lip)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()

prover = lipcert.certifier(model.eval(), input_shape=(2,))  # proves the constants, once
certificate = prover(test.x)
for found in lipcert.certified_accuracy(certificate, test.y, radii=[0.0, 0.05, 0.1, 0.15]):
    print(f"certified at {found.radius:.2f}: {100 * found.value:.1f} %")

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
points = axes.scatter(*test.x.T, c=certificate.radius, s=6, cmap="viridis")
axes.set(aspect="equal", title=f"certified radii, proved K = {prover.k_f:.1f}")
figure.colorbar(points, label="radius")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "moons.png", dpi=120)
