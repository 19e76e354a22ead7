"""One curve of a diagram over the seeds of many trainings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lipcert.tables.kinds import Range


@dataclass(frozen=True)
class Curve:
    """One quantity of one method: a mean with its range at every x."""

    name: str
    method: str  # gives the colour
    quantity: int  # gives the line: 0, solid, for the first of a panel
    points: Sequence[tuple[float, Range]]
