"""Enclose the true robust accuracy: certified accuracy is the lower end, accuracy under attack the upper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
from rich.progress import Progress
from torch import Tensor, nn

from lipcert.attack.apgd import apgd_ce, apgd_t
from lipcert.attack.independent import brendel_bethge, deepfool, fmn, pgd
from lipcert.attack.margin import towards_rival
from lipcert.attack.projection import inside, reach
from lipcert.attack.roundings import among_roundings
from lipcert.attack.target import FARTHEST, Target
from lipcert.certificates.certificate import Rounding
from lipcert.certificates.certifier import Certifier
from lipcert.data import Dataset


class Budget(NamedTuple):
    """The effort of an attack."""

    samples: int
    steps: int
    tries: int  # of the search among rounding errors
    classes: int  # that the targeted attack tries per sample


BudgetName = Literal["full", "cpu", "smoke"]

BUDGETS: dict[BudgetName, Budget] = {
    "full": Budget(1000, 500, 256, 9),
    "cpu": Budget(128, 50, 64, 3),
    "smoke": Budget(16, 10, 8, 2),
}

ATTACKS = ("margin", "rounding", "pgd", "apgd-ce", "apgd-t", "deepfool", "fmn", "brendel-bethge")

# The share of the certified radius that an attack on the claim may use.
INSIDE = 0.999

_BATCH = 128


@dataclass
class Band:
    """The results of attacks on certified samples."""

    right: Tensor  # (B,) classified correctly
    radius: Tensor  # (B,) certified
    nearest: Tensor  # (B,) distance of the closest input found with another prediction; inf if none
    found_by: dict[str, int] = field(default_factory=dict)  # samples on which an attack came closest
    broken: list[int] = field(default_factory=list)  # indices of samples whose certificate is refuted
    points: int = 0  # inputs tried

    def clean(self) -> int:
        """Count the samples that are classified correctly."""
        return int(self.right.sum())

    def certified(self, eps: float) -> int:
        """Count the samples that are correct and proved to stay so within eps."""
        return int((self.right & (self.radius > eps)).sum())

    def empirical(self, eps: float) -> int:
        """Count the samples that are correct and for which no attack found another prediction within eps."""
        return int((self.right & (self.nearest > eps)).sum())


def attack(
    model: nn.Module,
    certifier: Certifier,
    data: Dataset,
    radii: Sequence[float],
    budget: BudgetName = "cpu",
    rounding: Rounding = "float64",
    attacks: Sequence[str] = ATTACKS,
    local: Sequence[float] = (),
    quiet: bool = True,
) -> Band:
    """Attack some samples of a data set, at the radii and inside every certified radius.

    `local` are the balls of the claim, as the certifier takes them.
    """
    size = BUDGETS[budget]
    # The order of the data does not matter: the random choice is always the same.
    chosen = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[: size.samples]
    x, y = data.floats(chosen), data.y[chosen]
    bounds = _bounds(x, radii)
    parts = []
    with Progress(transient=True, disable=quiet) as progress:
        task = progress.add_task("attack", total=-(-len(x) // _BATCH) * len(attacks))
        for start in range(0, len(x), _BATCH):
            target = Target.of(model, certifier, x[start : start + _BATCH], rounding, bounds, local)
            search = _Search(target, start)
            for name in attacks:
                progress.update(task, description=name)
                for points in _sets(name, target, radii, size):
                    search.note(name, points)
                progress.advance(task)
            parts.append(search)
    return _join(parts, y, chosen)


class _Search:
    """The findings of one batch."""

    def __init__(self, target: Target, start: int) -> None:
        self.target, self.start = target, start
        self.nearest = torch.full((len(target),), torch.inf, dtype=torch.float64)
        self.by = [""] * len(target)
        # The network must give at the samples themselves the certified prediction.
        self.broken = (target.radius > 0) & target.flipped(target.x)
        self.points = 0

    def note(self, name: str, points: Tensor) -> None:
        """Keep points that are closer than before, and points that refute a certificate."""
        target = self.target
        self.points += len(points)
        self.broken |= target.broken(points)
        low, high = target.bounds
        allowed = ((points >= low) & (points <= high)).flatten(1).all(dim=1)
        distance = target.distance(points)
        closer = allowed & target.flipped(points) & (distance < self.nearest)
        for i in closer.nonzero().flatten().tolist():
            self.by[i] = name
        self.nearest = torch.where(closer, distance, self.nearest)


def _sets(name: str, target: Target, radii: Sequence[float], size: Budget) -> Iterator[Tensor]:
    """Yield the points that an attack finds, in sets of one per sample."""
    if name == "margin":
        yield towards_rival(target, INSIDE * target.radius.clamp_max(FARTHEST), size.steps)
    if name == "rounding":
        yield from among_roundings(target, size.steps, size.tries)
    elif name in _NEAREST:
        yield _NEAREST[name](target, size.steps)
    else:
        yield from (_at_eps(name, target, eps, size) for eps in radii)


# Attacks that look for the nearest point; the others search within a given eps.
_NEAREST = {"deepfool": deepfool, "fmn": fmn, "brendel-bethge": brendel_bethge}


def _at_eps(name: str, target: Target, eps: float, size: Budget) -> Tensor:
    """Return the points, at most eps away, that an attack finds."""
    short = reach(target, eps)  # a little less than eps
    if name == "margin":
        points = towards_rival(target, torch.full_like(target.radius, short), size.steps)
    elif name == "apgd-t":
        points = apgd_t(target, short, size.steps, size.classes)
    else:
        points = {"pgd": pgd, "apgd-ce": apgd_ce}[name](target, short, size.steps)
    return inside(target, points, eps)


def _bounds(x: Tensor, radii: Sequence[float]) -> tuple[float, float]:
    """Return [0, 1] for images, and bounds wide enough not to matter for other data."""
    low, high = float(x.min()), float(x.max())
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    room = high - low + max(radii)
    return low - room, high + room


def _join(parts: Sequence[_Search], y: Tensor, chosen: Tensor) -> Band:
    predictions = torch.cat([p.target.prediction for p in parts])
    right = predictions == y
    names = [name for p in parts for name in p.by if name]
    return Band(
        right=right,
        radius=torch.cat([p.target.radius for p in parts]),
        nearest=torch.cat([p.nearest for p in parts]),
        found_by={name: names.count(name) for name in ATTACKS if name in names},
        broken=[int(chosen[p.start + i]) for p in parts for i in p.broken.nonzero().flatten().tolist()],
        points=sum(p.points for p in parts),
    )
