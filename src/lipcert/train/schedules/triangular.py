"""A rise, a long fall and a short one, in straight lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lipcert.errors import InputError
from lipcert.train.schedules.base import SCHEDULES, Schedule


@SCHEDULES.register("triangular")
@dataclass(frozen=True)
class Triangular(Schedule):
    """Go from 0 to the value at `peak`, to value·`low` at `knee` and to 0, in straight lines.

    Example:
        >>> Triangular()(start=1.0, t=0.4)
        1.0
    """

    peak: float = 0.4
    knee: float = 0.8
    low: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.peak < self.knee < 1:
            raise InputError(f"peak, knee: expected 0 < peak < knee < 1, got {self.peak}, {self.knee}")

    @property
    def knots(self) -> Sequence[float]:
        """Return the fractions between which the value only rises or only falls."""
        return (self.peak, self.knee)

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        if t <= self.peak:
            return start * t / self.peak
        if t <= self.knee:
            return start * (1 - (1 - self.low) * (t - self.peak) / (self.knee - self.peak))
        return start * self.low * (1 - t) / (1 - self.knee)
