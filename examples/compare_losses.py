"""CLL at three slacks, GloRo and cross-entropy on two moons, 150 steps each (docs/reproduction.md: 20,000).

    python examples/compare_losses.py

So short a training is far from GloRo's end, and near that of CLL with little slack.
"""

import torch

import lipcert
from lipcert.losses import CLL, CrossEntropy, GloRo, Loss

LOSSES = {
    "CLL, slack 0.3": CLL(eps=0.15, slack=0.3, lam=1e-6, sides="one"),
    "CLL, slack 0.1": CLL(eps=0.15, slack=0.1, lam=1e-6, sides="one"),
    "CLL, slack 0.01": CLL(eps=0.15, slack=0.01, lam=1e-6, sides="one"),
    "GloRo": GloRo(eps=0.15),
    "cross-entropy": CrossEntropy(),
}


def train(loss: Loss, steps: int = 150) -> tuple[float, float, float]:
    """Accuracy, certified accuracy at 0.15, and the proved constant."""
    torch.manual_seed(1)
    data, val = lipcert.data.load("moons"), lipcert.data.load("moons", split="val", val=2000)
    model = lipcert.models.create("mlp", num_classes=2, input_shape=(2,))
    bounded = lipcert.Bounded(model, input_shape=(2,))
    optimizer = torch.optim.Adam(bounded.parameters(), lr=1e-2)
    for _ in range(steps):
        logits, lip = bounded(data.x)
        optimizer.zero_grad()
        (loss(logits, data.y, lip).mean() + loss.penalty(lip)).backward()
        optimizer.step()
    prover = lipcert.certifier(model.eval(), input_shape=(2,))
    clean, certified = lipcert.certified_accuracy(prover(val.x), val.y, radii=[0.0, 0.15])
    return 100 * clean.value, 100 * certified.value, prover.k_f


for name, loss in LOSSES.items():
    clean, certified, constant = train(loss)
    print(f"{name:16} clean {clean:5.1f} %, certified {certified:5.1f} %, K_f {constant:6.1f}")
