"""A straight line up to the full value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lipcert.train.schedules.base import SCHEDULES, Schedule, check_fraction


@SCHEDULES.register("ramp")
@dataclass(frozen=True)
class Ramp(Schedule):
    """A straight line from `first` times the value up to the value, reached at fraction `until` and kept.

    Example:
        >>> Ramp(until=0.5)(start=4.0, t=0.25)
        2.0
    """

    first: float = 0.0
    until: float = 1.0

    def __post_init__(self) -> None:
        check_fraction("until", self.until)

    @property
    def knots(self) -> Sequence[float]:
        """Return the fractions between which the value only rises or only falls."""
        return (self.until,)

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        return start * (self.first + (1 - self.first) * min(t / self.until, 1.0))
