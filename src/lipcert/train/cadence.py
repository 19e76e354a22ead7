"""Decide when to save a training: every n epochs, or as often as costs little of its time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Every = int | Literal["auto"]

# The largest share of the time that is spent on writing checkpoints if their number is left to us.
SHARE = 0.02


@dataclass
class Cadence:
    """Decides after each epoch whether to save.

    Example:
        >>> cadence = Cadence("auto")
        >>> cadence.is_due(epoch=1, seconds=60.0)  # nothing is saved yet
        True
        >>> cadence.saved(seconds=60.0, cost=3.0)
        >>> cadence.is_due(epoch=2, seconds=120.0), cadence.is_due(epoch=4, seconds=240.0)
        (False, True)
    """

    every: Every
    cost: float = 0.0  # seconds that the last checkpoint took
    last: float = 0.0  # seconds of training before the last checkpoint

    def is_due(self, epoch: int, seconds: float) -> bool:
        """Return whether to save after this epoch, at so many seconds of training."""
        if self.every == "auto":
            return SHARE * (seconds - self.last) >= self.cost
        return epoch % self.every == 0

    def saved(self, seconds: float, cost: float) -> None:
        """Note a checkpoint that took `cost` seconds."""
        self.last, self.cost = seconds, cost
