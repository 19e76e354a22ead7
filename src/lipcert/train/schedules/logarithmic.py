"""GloRo's growth of ε."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lipcert.train.schedules.base import SCHEDULES, Schedule


@SCHEDULES.register("logarithmic")
@dataclass(frozen=True)
class Logarithmic(Schedule):
    r"""Grow as GloRo's ε: $\log((e^v - e^{fv})t + e^{fv})$, from f·v up to the full value v.

    Example:
        >>> Logarithmic()(start=0.5, t=1.0)
        0.5
    """

    first: float = 0.01

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        if t >= 1:
            return start  # exactly: who certifies at the ε of training asks whether it is the same number
        low = math.exp(self.first * start)
        return math.log((math.exp(start) - low) * t + low)
