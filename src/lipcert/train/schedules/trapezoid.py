"""A rise, a plateau and a fall, in straight lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lipcert.errors import InputError
from lipcert.train.schedules.base import SCHEDULES, Schedule


@SCHEDULES.register("trapezoid")
@dataclass(frozen=True)
class Trapezoid(Schedule):
    """Rise from 0 to the value at `rise`, keep it until `fall`, and return to 0, in straight lines.

    Example:
        >>> Trapezoid(rise=0.1, fall=0.5)(start=1.0, t=0.75)
        0.5
    """

    rise: float = 0.05
    fall: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.rise <= self.fall < 1:
            raise InputError(f"rise, fall: expected 0 < rise <= fall < 1, got {self.rise}, {self.fall}")

    @property
    def knots(self) -> Sequence[float]:
        """Return the fractions between which the value only rises or only falls."""
        return (self.rise, self.fall)

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        return start * min(t / self.rise, 1.0, (1 - t) / (1 - self.fall))
