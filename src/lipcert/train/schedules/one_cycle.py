"""Smith's one-cycle policy, with half cosines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lipcert.train.schedules.base import SCHEDULES, Schedule, check_fraction, half_cosine


@SCHEDULES.register("one-cycle")
@dataclass(frozen=True)
class OneCycle(Schedule):
    """Rise by half a cosine from value/`divide` to the value at `peak`, and fall to value/`final`.

    Example:
        >>> OneCycle()(start=1.0, t=0.3)
        1.0
    """

    peak: float = 0.3
    divide: float = 25.0
    final: float = 1e4

    def __post_init__(self) -> None:
        check_fraction("peak", self.peak)

    @property
    def knots(self) -> Sequence[float]:
        """Return the fractions between which the value only rises or only falls."""
        return (self.peak,)

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        if t <= self.peak:
            return half_cosine(start / self.divide, start, t / self.peak)
        return half_cosine(start, start / self.final, (t - self.peak) / (1 - self.peak))
