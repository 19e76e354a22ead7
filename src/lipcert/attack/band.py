"""Enclose the true robust accuracy: certified accuracy is the lower end, accuracy under attack the upper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import torch
from torch import Tensor, nn

from lipcert.attack.base import ATTACKS, Budget
from lipcert.attack.target import Target
from lipcert.certificates.certificate import Rounding
from lipcert.certificates.certifier import Certifier
from lipcert.data import Dataset
from lipcert.progress import tracked
from lipcert.types import BudgetName

BUDGETS: dict[BudgetName, Budget] = {
    "full": Budget(1000, 500, 256, 9),
    "cpu": Budget(128, 50, 64, 3),
    "smoke": Budget(16, 10, 8, 2),
}

_BATCH = 128


@dataclass
class Band:
    """The results of attacks on certified samples."""

    correct: Tensor  # (B,) classified correctly
    radius: Tensor  # (B,) certified
    nearest: Tensor  # (B,) distance of the closest input found with another prediction; inf if none
    found_by: dict[str, int] = field(default_factory=dict)  # samples on which an attack came closest
    broken: list[int] = field(default_factory=list)  # indices of samples whose certificate is refuted
    points: int = 0  # inputs tried

    def clean(self) -> int:
        """Count the samples that are classified correctly."""
        return int(self.correct.sum())

    def certified(self, eps: float) -> int:
        """Count the samples that are correct and proved to stay so within eps."""
        return int((self.correct & (self.radius > eps)).sum())

    def empirical(self, eps: float) -> int:
        """Count the samples that are correct and for which no attack found another prediction within eps."""
        return int((self.correct & (self.nearest > eps)).sum())


def attack(
    model: nn.Module,
    certifier: Certifier,
    data: Dataset,
    radii: Sequence[float],
    budget: BudgetName = "cpu",
    rounding: Rounding = "float64",
    attacks: Sequence[str] | None = None,
    local: Sequence[float] = (),
) -> Band:
    """Attack some samples of a data set, at the radii and inside every certified radius.

    `attacks` are the names of those to run, all by default; `local` are the balls of the claim, as a
    certifier takes them.
    """
    searches = {name: ATTACKS.create(name) for name in (ATTACKS if attacks is None else attacks)}
    size = BUDGETS[budget]
    # The order of the data does not matter: the random choice is always the same.
    chosen = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[: size.samples]
    x, y = data.floats(chosen), data.y[chosen]
    bounds = _bounds(x, radii)
    parts = [
        _Search(Target.of(model, certifier, x[start : start + _BATCH], rounding, bounds, local), start)
        for start in range(0, len(x), _BATCH)
    ]
    for search, name in tracked(list(product(parts, searches)), "attacking"):
        for points in searches[name].sets(search.target, radii, size):
            search.note(name, points)
    return _join(parts, y, chosen)


class _Search:
    """The findings of one batch."""

    def __init__(self, target: Target, start: int) -> None:
        self.target, self.start = target, start
        self.nearest = torch.full((len(target),), torch.inf, dtype=torch.float64)
        self.by = [""] * len(target)
        # The network must give at the samples themselves the certified prediction.
        self.broken = ((target.radius > 0) & target.witnessed(target.x)).cpu()
        self.points = 0

    def note(self, name: str, points: Tensor) -> None:
        """Keep points that are closer than before, and points that refute a certificate."""
        target = self.target
        self.points += len(points)
        self.broken |= target.broken(points).cpu()
        low, high = target.bounds
        allowed = ((points >= low) & (points <= high)).flatten(1).all(dim=1)
        distance = target.distance(points).cpu()
        closer = (allowed & target.witnessed(points)).cpu() & (distance < self.nearest)
        for i in closer.nonzero().flatten().tolist():
            self.by[i] = name
        self.nearest = torch.where(closer, distance, self.nearest)


def _bounds(x: Tensor, radii: Sequence[float]) -> tuple[float, float]:
    """Return [0, 1] for images, and bounds wide enough not to matter for other data."""
    low, high = float(x.min()), float(x.max())
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    room = high - low + max(radii)
    return low - room, high + room


def _join(parts: Sequence[_Search], y: Tensor, chosen: Tensor) -> Band:
    predictions = torch.cat([p.target.prediction for p in parts]).cpu()
    correct = predictions == y.cpu()
    names = [name for p in parts for name in p.by if name]
    return Band(
        correct=correct,
        radius=torch.cat([p.target.radius for p in parts]).cpu(),
        nearest=torch.cat([p.nearest for p in parts]),
        found_by={name: names.count(name) for name in ATTACKS if name in names},
        broken=[int(chosen[p.start + i]) for p in parts for i in p.broken.nonzero().flatten().tolist()],
        points=sum(p.points for p in parts),
    )
