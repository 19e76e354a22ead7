"""The parts that schedules share: the contract, the registry, the checks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from lipcert.errors import InputError
from lipcert.registry import Registry


class Schedule(ABC):
    """schedule(start, t) → value, t from 0 to 1."""

    @property
    def knots(self) -> Sequence[float]:
        """Return the fractions, besides 0 and 1, between which the value only rises or only falls."""
        return ()

    @abstractmethod
    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""


SCHEDULES: Registry[Schedule] = Registry("schedule", package="lipcert.train.schedules")


def half_cosine(first: float, last: float, t: float) -> float:
    """Return the value at fraction t of half a cosine from `first` to `last`."""
    return last + (first - last) * (1 + math.cos(math.pi * t)) / 2


def check_fraction(name: str, value: float) -> None:
    """Raise unless the value is a fraction of training above 0."""
    if not 0 < value <= 1:
        raise InputError(f"{name}: expected a fraction of training in (0, 1], got {value!r}")
