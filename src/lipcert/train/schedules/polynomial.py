"""A polynomial decay: fast at first."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lipcert.train.schedules.base import SCHEDULES, Schedule


@SCHEDULES.register("polynomial", example={"end": 0.1, "gamma": 2})
@dataclass(frozen=True)
class Polynomial(Schedule):
    """Follow end + (start − end)(1 − t)^gamma, which is fast at first.

    Example:
        >>> Polynomial(end=1.0, gamma=2)(start=5.0, t=0.5)
        2.0
    """

    end: float
    gamma: float = 1.0

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        return self.end + (start - self.end) * math.pow(1 - t, self.gamma)
