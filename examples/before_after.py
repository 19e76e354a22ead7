"""Train one MLP twice, with cross-entropy and with CLL: the same network and steps, other radii.

python examples/before_after.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

import lipcert
from lipcert.losses import CLL, CrossEntropy
from lipcert.nn import MinMax

images, labels = load_digits(return_X_y=True)
train, test = (
    lipcert.data.load("arrays", split=split, x=images / 16, y=labels, test=0.3) for split in ("train", "test")
)
RADII = [0, 36 / 255, 0.3, 0.5, 1.0]
print("loss            K_f   mean radius   correct and certified at", *(f"{radius:.3g}" for radius in RADII))
for name, loss in (("cross-entropy", CrossEntropy()), ("CLL", CLL(eps=0.3, slack=0.05, lam=1e-3))):
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(64, 128), MinMax(), nn.Linear(128, 128), MinMax(), nn.Linear(128, 10))
    bounded = lipcert.Bounded(network, input_shape=(64,))  # also returns the constants of the logits
    optimizer = torch.optim.Adam(bounded.parameters(), lr=2e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=600)  # steps: 60 epochs of 10
    for _ in range(60):
        for batch in torch.randperm(len(train)).split(128):
            logits, lip = bounded(train.floats(batch))
            value = loss(logits, train.y[batch], lip).mean() + loss.penalty(lip)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            schedule.step()
    prover = lipcert.certifier(network.eval(), input_shape=(64,))
    certificate = prover(test.x)
    radius = torch.where(certificate.prediction == test.y, certificate.radius, 0.0)
    rows = lipcert.certified_accuracy(certificate, test.y, RADII)
    shares = "  ".join(f"{100 * row.value:5.1f}" for row in rows)
    print(f"{name:13}  {prover.k_f:7.2f}  {radius.mean():8.4f}   {shares}", flush=True)
