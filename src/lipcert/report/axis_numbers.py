"""Choose the numbers along an axis so that they do not touch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axis import XAxis, YAxis
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullFormatter, NullLocator

# Beyond so many powers of ten there is room for them alone.
_FEW = 1e4

# Numbers of an axis at most, and the least distance between two measured places as a part of its length.
_MOST, _GAP = 6, 0.16


def number_axis(axis: XAxis | YAxis, places: Sequence[float], log: bool) -> None:
    """Set the scale and its numbers: the measured places where they have room, whole numbers for counts."""
    if log:
        getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    if have_room(places, log):
        axis.set_major_locator(FixedLocator(list(places)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    elif log:
        _number_powers(axis)
    else:
        whole = bool(places) and all(place == int(place) for place in places)
        axis.set_major_locator(MaxNLocator(_MOST, integer=whole, steps=[1, 2, 5, 10]))


def _number_powers(axis: XAxis | YAxis) -> None:
    """Write out 1, 2, 5, 10 … where they are few, or every second or third power where they are many."""
    low, high = axis.get_view_interval()
    if high < _FEW * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
    else:
        axis.set_major_locator(LogLocator(numticks=_MOST))
        axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def have_room(places: Sequence[float], log: bool, gap: float = _GAP) -> bool:
    """Return whether the places of an axis are so far apart that a number fits to each."""
    if not 2 <= len(places) <= _MOST:
        return False
    along = [math.log(place) for place in places] if log else list(places)
    return min(b - a for a, b in pairwise(along)) >= gap * (along[-1] - along[0])
