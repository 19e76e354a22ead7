"""Half a cosine."""

from __future__ import annotations

from dataclasses import dataclass

from lipcert.train.schedules.base import SCHEDULES, Schedule, half_cosine


@SCHEDULES.register("cosine")
@dataclass(frozen=True)
class Cosine(Schedule):
    """Follow half a cosine from the start down to `end`.

    Example:
        >>> Cosine()(start=1.0, t=0.5)
        0.5
    """

    end: float = 0.0

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        return half_cosine(start, self.end, t)
