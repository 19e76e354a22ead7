"""Steps down at given fractions of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lipcert.train.schedules.base import SCHEDULES, Schedule, check_fraction


@SCHEDULES.register("multistep", example={"at": [0.5]})
@dataclass(frozen=True)
class MultiStep(Schedule):
    """Multiply by `factor` at each of the fractions `at`.

    Example:
        >>> MultiStep(at=[0.4, 0.6], factor=0.5)(start=1.0, t=0.4)
        0.5
    """

    at: Sequence[float]
    factor: float = 0.1

    def __post_init__(self) -> None:
        for fraction in self.at:
            check_fraction("at", fraction)

    @property
    def knots(self) -> Sequence[float]:
        """Return the fractions between which the value only rises or only falls."""
        return self.at

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        return start * self.factor ** sum(t >= fraction for fraction in self.at)
