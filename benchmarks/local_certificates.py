"""Certificates on balls around each sample: what balls and boxes add to the global constants.

Dense networks on the digits of scikit-learn: plain cross-entropy, and GloRo trained with constants of balls.
Half of the images train, the other half is certified. Writes results/local-certificates.json.
"""

from __future__ import annotations

import time
from unittest.mock import patch

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from lipcert import Bounded, Certifier, certifier
from lipcert.certificates import local as balls_only
from lipcert.losses import GloRo
from lipcert.nn import MinMax
from results import write_table

BALL, STEPS, BATCH = 1.0, 1500, 128


def network(seed: int, between: type[nn.Module]) -> nn.Sequential:
    """Make an MLP with two hidden layers."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 128), between(), nn.Linear(128, 64), between(), nn.Linear(64, 10))


def split() -> tuple[Tensor, Tensor]:
    """Return the digits with pixels in [0, 1], half of them for training."""
    images, labels = load_digits(return_X_y=True)
    return torch.from_numpy(images).float() / 16, torch.from_numpy(labels)


def train(model: nn.Module, x: Tensor, y: Tensor, robust: bool) -> None:
    """Train with cross-entropy, or with GloRo on constants of balls."""
    bounded = Bounded(model, (64,), local=BALL / 2)
    loss = GloRo(eps=BALL / 2)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(STEPS):
        some = torch.randint(len(x), (BATCH,))
        if robust:
            logits, lip = bounded(x[some])
            error = loss(logits, y[some], lip).mean() + loss.penalty(lip)
        else:
            error = cross_entropy(model(x[some]), y[some])
        optimizer.zero_grad()
        error.backward()
        optimizer.step()


def mean_radius(certify: Certifier, x: Tensor, y: Tensor, local: tuple[float, ...]) -> tuple[float, float]:
    """Return the mean certified radius, 0 where the class is wrong, and milliseconds for a sample."""
    start = time.perf_counter()
    found = certify(x, local=local)
    seconds = time.perf_counter() - start
    right = found.prediction == y
    return float((found.radius * right).mean()), 1000 * seconds / len(x)


def row(name: str, between: type[nn.Module], robust: bool) -> list[str]:
    """Train one network and certify it in three ways."""
    x, y = split()
    half = len(x) // 2
    model = network(0, between)
    train(model, x[:half], y[:half], robust)
    certify = certifier(model, (64,))
    x, y = x[half:], y[half:]
    middle = float(certify(x).radius.median())
    local = tuple(middle * factor for factor in (1.0, 1.25, 1.5, 2.0, 3.0))
    accuracy = float((model(x).argmax(1) == y).float().mean())
    globally, fast = mean_radius(certify, x, y, ())
    with patch.object(balls_only, "box_after", lambda step, before: None):
        by_ball, slower = mean_radius(certify, x, y, local)
    by_box, slow = mean_radius(certify, x, y, local)
    radii = [f"{globally:.4f}", f"{by_ball:.4f}", f"{by_box:.4f}"]
    return [name, f"{100 * accuracy:.1f}", *radii, f"{fast:.2f}", f"{slower:.2f}", f"{slow:.2f}"]


def main() -> None:
    torch.set_num_threads(1)
    table = [
        row("ReLU, cross-entropy", nn.ReLU, robust=False),
        row("ReLU, GloRo with balls", nn.ReLU, robust=True),
        row("MinMax, GloRo with balls", MinMax, robust=True),
    ]
    for line in table:
        print(*line, sep="  ", flush=True)
    note = "digits of scikit-learn, mean radius (0 where the class is wrong) over half of them; five balls"
    times = ["ms, global", "ms, balls", "ms, balls and boxes"]
    titles = ["network", "accuracy [%]", "radius, global", "radius, balls", "radius, balls and boxes", *times]
    write_table("local-certificates", note, titles, table)


if __name__ == "__main__":
    main()
