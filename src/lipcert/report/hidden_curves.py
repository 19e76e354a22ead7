"""Find curves that a reader would not see, because they are equal to another or lie under it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from lipcert.report.plotted_curve import Curve

# Curves whose means differ by less than this part of the diagram's height cover each other.
_NEAR = 0.03


def joined(curves: Sequence[Curve]) -> list[Curve]:
    """Return the curves, those of one method that are equal everywhere as a single one with both names."""
    found: list[Curve] = []
    for curve in curves:
        twin = next((one for one in found if one.method == curve.method and _equal(one, curve)), None)
        if twin is None:
            found.append(curve)
        else:
            found[found.index(twin)] = replace(twin, name=_both(twin.name, curve.name))
    return found


def _equal(one: Curve, other: Curve) -> bool:
    return [x for x, _ in one.points] == [x for x, _ in other.points] and all(
        math.isclose(a.mean, b.mean, rel_tol=1e-3)
        for (_, a), (_, b) in zip(one.points, other.points, strict=True)
    )


def _both(name: str, other: str) -> str:
    """Name two equal curves; what both names begin with stands once.

    Example:
        >>> _both("GloRo K_f", "GloRo K_hf")
        'GloRo K_f = K_hf'
    """
    words, others = name.split(), other.split()
    while len(others) > 1 and words[: len(words) - len(others) + 1] and words[0] == others[0]:
        words, others = words[1:], others[1:]
    return f"{name} = {' '.join(others)}"


def hidden_curves(curves: Sequence[Curve], log: bool) -> list[Curve]:
    """Return the curves that lie under a later one along more than half of their points."""
    heights = [[(x, _height(value.mean, log)) for x, value in curve.points] for curve in curves]
    flat = [height for points in heights for _, height in points]
    near = _NEAR * (max(flat) - min(flat)) if flat else 0.0
    return [
        curve
        for i, (curve, points) in enumerate(zip(curves, heights, strict=True))
        if len(points) > 1 and any(_covers(later, points, near) for later in heights[i + 1 :])
    ]


def _height(value: float, log: bool) -> float:
    return math.log(value) if log else value


def _covers(later: Sequence[tuple[float, float]], points: Sequence[tuple[float, float]], near: float) -> bool:
    others = dict(later)
    close = [abs(others[x] - height) < near for x, height in points if x in others]
    return 2 * sum(close) > len(points)
