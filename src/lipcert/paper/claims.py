"""Checks of the paper's claims in rows: does a column rise, does it stay, which series is ahead.

A difference counts if it is larger than the spread of the seeds at either end; otherwise the claim stays
open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lipcert.paper.definition import Verdict
from lipcert.report.curves import spread
from lipcert.runs.rows import Row

Check = Callable[[Sequence[Row]], Verdict]
Point = tuple[float, float, float, float]  # x; the minimum, the mean and the maximum over the seeds


def trades(falling: str, rising: str, series: str = "") -> Check:
    """Check that one column falls and another rises from the smallest x to the largest."""

    def check(rows: Sequence[Row]) -> Verdict:
        down, up = (spread(rows, series, column) for column in (falling, rising))
        fell = _moved(down[-1], down[0])
        rose = _moved(up[0], max(up[1:], key=lambda p: p[1]))
        best = max(up, key=lambda p: p[2])
        found = (
            f"{falling} {_percent(down[0][2])} → {_percent(down[-1][2])}; {rising} {_percent(up[0][2])} → "
            f"{_percent(up[-1][2])}, most ({_percent(best[2])}) at {best[0]:g}"
        )
        return Verdict(_all([fell, rose]), found)

    return check


def ahead(column: str, first: str, second: str, scale: float = 100.0) -> Check:
    """Check that one series is above another at every x; shown in percentage points, or unscaled."""

    def check(rows: Sequence[Row]) -> Verdict:
        mine, theirs = (spread(rows, series, column) for series in (first, second))
        if not mine or [p[0] for p in mine] != [p[0] for p in theirs]:
            return Verdict(None, f"{column} was not measured for both at the same places")
        pairs = list(zip(mine, theirs, strict=True))
        places = [_moved(b, a) for a, b in pairs]
        listed = ", ".join(f"{a[0]:g}: {scale * (a[2] - b[2]):+.1f}" for a, b in pairs)
        clear = sum(place is True for place in places)
        found = (
            f"{first} less {second} at {listed}; beyond the spread of the seeds at {clear} of {len(pairs)}"
        )
        return Verdict(_all(places), found)

    return check


def insensitive(column: str, low: float, high: float, points: float) -> Check:
    """Check that the means stay within this many percentage points in a range of x."""

    def check(rows: Sequence[Row]) -> Verdict:
        inside = [p for p in spread(rows, "", column) if low <= p[0] <= high]
        means = [p[2] for p in inside]
        found = f"{_percent(min(means))} to {_percent(max(means))} from {inside[0][0]:g} to {inside[-1][0]:g}"
        return Verdict(100 * (max(means) - min(means)) <= points, found)

    return check


def falls_outside(column: str, low: float, high: float) -> Check:
    """Check that a column is lower at either end than anywhere within a range of x."""

    def check(rows: Sequence[Row]) -> Verdict:
        points = spread(rows, "", column)
        worst = min((p for p in points if low <= p[0] <= high), key=lambda p: p[2])
        ends = [points[0], points[-1]]
        listed = " and ".join(f"{_percent(p[2])} at {p[0]:g}" for p in ends)
        return Verdict(
            _all([_moved(p, worst) for p in ends]), f"{listed}; least between {_percent(worst[2])}"
        )

    return check


def constant(column: str, factor: float) -> Check:
    """Check that the largest mean of a column is at most this many times the smallest."""

    def check(rows: Sequence[Row]) -> Verdict:
        means = [p[2] for p in spread(rows, "", column)]
        ratio = max(means) / min(means)
        return Verdict(ratio <= factor, f"{column} {min(means):.1f} to {max(means):.1f}, {ratio:.2f}-fold")

    return check


def scale_sets_khf(rows: Sequence[Row]) -> Verdict:
    """Check K_hf = 1/σ = log((1−p)/p)/ε for every CLL row, for any K_f.

    The certificate says so by definition, for a loss that divides by the proved K_f. Training divided by an
    estimate K, so the check is whether K_f/(σK), the constant of the trained loss, is 1/σ to 5 %.
    """
    mine = [row for row in rows if row["loss"] == "cll"]
    k_f = [row["k_f"] for row in mine]
    off = max(abs(row["k_f"] / row["K_f in training"] - 1) for row in mine)
    found = f"K_hf is 1/σ to {100 * off:.1f} % with the last K, at K_f {min(k_f):,.1f} to {max(k_f):,.1f}"
    return Verdict(off < 0.05, found)


def _moved(low: Point, high: Point) -> bool | None:
    """Return whether the seeds of one point all lie below those of another; None if they overlap."""
    if low[3] < high[1]:
        return True
    return False if high[3] < low[1] else None


def _all(parts: Sequence[bool | None]) -> bool | None:
    """Return False if one part is False, None if one is open, else True."""
    if False in parts:
        return False
    return None if None in parts else True


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
