"""The contract of attacks: each is a search for points near certified samples, found by its name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torch import Tensor

from lipcert.attack.projection import inside, reach
from lipcert.attack.target import Target
from lipcert.registry import Registry


class Budget(NamedTuple):
    """The size of an attack."""

    samples: int
    steps: int
    tries: int  # how often the search among rounding errors tries
    classes: int  # that the targeted attack tries per sample


class Attack(ABC):
    """Searches inputs whose prediction differs from that of the sample they belong to."""

    @abstractmethod
    def sets(self, target: Target, radii: Sequence[float], size: Budget) -> Iterator[Tensor]:
        """Yield points (B, ...) in sets of one per sample; where a search fails, any point will do."""


class WithinEps(Attack):
    """An attack that searches within a given eps. Its points lie there after rounding, too."""

    @abstractmethod
    def within(self, target: Target, eps: float, size: Budget) -> Tensor:
        """Return points, at most about eps away: (B, ...)."""

    def sets(self, target: Target, radii: Sequence[float], size: Budget) -> Iterator[Tensor]:
        """Yield one set per radius."""
        for eps in radii:
            yield inside(target, self.within(target, reach(target, eps), size), eps)


class Nearest(Attack):
    """An attack that looks for the nearest point with another prediction."""

    @abstractmethod
    def nearest(self, target: Target, size: Budget) -> Tensor:
        """Return the points found: (B, ...)."""

    def sets(self, target: Target, radii: Sequence[float], size: Budget) -> Iterator[Tensor]:
        """Yield one set, whatever the radii."""
        yield self.nearest(target, size)


ATTACKS: Registry[Attack] = Registry("attack", package="lipcert.attack")
