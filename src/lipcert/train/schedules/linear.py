"""A straight line to a final value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lipcert.train.schedules.base import SCHEDULES, Schedule, check_fraction


@SCHEDULES.register("linear", example={"end": 0.1})
@dataclass(frozen=True)
class Linear(Schedule):
    """Go linearly from the start to `end`, reached at fraction `until` and kept.

    Example:
        >>> Linear(end=20.0, until=0.5)(start=0.0, t=0.25)
        10.0
    """

    end: float
    until: float = 1.0

    def __post_init__(self) -> None:
        check_fraction("until", self.until)

    @property
    def knots(self) -> Sequence[float]:
        """Return the fractions between which the value only rises or only falls."""
        return (self.until,)

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        return start + (self.end - start) * min(t / self.until, 1.0)
