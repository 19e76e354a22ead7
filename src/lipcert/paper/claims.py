"""Checks of the paper's claims in rows: does a column rise, does it stay, which series is ahead.

A difference counts if it is larger than the spread of the seeds at either end; otherwise the claim stays
open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lipcert.paper.definition import Verdict
from lipcert.paper.outcome import Outcome, Place, places
from lipcert.runs.measures import Measure
from lipcert.tables.kinds import CONSTANT, percent

Check = Callable[[Sequence[Outcome]], Verdict]


def trades(falling: Measure, rising: Measure, series: str = "") -> Check:
    """Check that from the least x to the greatest one column falls and another rises."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        down, up = (places(rows, series, measure) for measure in (falling, rising))
        fell = _moved(down[-1], down[0])
        rose = _moved(up[0], max(up[1:], key=lambda p: p.range.least))
        best = max(up, key=lambda p: p.range.mean)
        found = (
            f"{falling.title} {_mean(down[0])} → {_mean(down[-1])}; {rising.title} {_mean(up[0])} → "
            f"{_mean(up[-1])}, most ({_mean(best)}) at {best.x:g}"
        )
        return Verdict(_all([fell, rose]), found)

    return check


def ahead(measure: Measure, first: str, second: str) -> Check:
    """Check that at every x one series is above another; shown in percentage points, or as it is."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        mine, theirs = (places(rows, series, measure) for series in (first, second))
        if not mine or [p.x for p in mine] != [p.x for p in theirs]:
            return Verdict(None, f"{measure.title} was not measured for both at the same places")
        pairs = list(zip(mine, theirs, strict=True))
        moved = [_moved(b, a) for a, b in pairs]
        scale = measure.kind.scale
        listed = ", ".join(f"{a.x:g}: {scale * (a.range.mean - b.range.mean):+.1f}" for a, b in pairs)
        clear = sum(place is True for place in moved)
        found = (
            f"{first} less {second} at {listed}; beyond the spread of the seeds at {clear} of {len(pairs)}"
        )
        return Verdict(_all(moved), found)

    return check


def insensitive(measure: Measure, low: float, high: float, points: float) -> Check:
    """Check that within a range of x the means stay within so many percentage points."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        inside = [p for p in places(rows, "", measure) if low <= p.x <= high]
        means = [p.range.mean for p in inside]
        found = f"{percent(min(means))} to {percent(max(means))} from {inside[0].x:g} to {inside[-1].x:g}"
        return Verdict(100 * (max(means) - min(means)) <= points, found)

    return check


def falls_outside(measure: Measure, low: float, high: float) -> Check:
    """Check that at either end a column is lower than anywhere within a range of x."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        points = places(rows, "", measure)
        worst = min((p for p in points if low <= p.x <= high), key=lambda p: p.range.mean)
        ends = [points[0], points[-1]]
        listed = " and ".join(f"{_mean(p)} at {p.x:g}" for p in ends)
        return Verdict(_all([_moved(p, worst) for p in ends]), f"{listed}; least between {_mean(worst)}")

    return check


def constant(measure: Measure, factor: float) -> Check:
    """Check that the largest mean of a column is at most so many times the smallest."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        means = [p.range.mean for p in places(rows, "", measure)]
        ratio = max(means) / min(means)
        low, high = CONSTANT.text(min(means)), CONSTANT.text(max(means))
        return Verdict(ratio <= factor, f"{measure.title} {low} to {high}, {ratio:.2f}-fold")

    return check


def scale_sets_khf(rows: Sequence[Outcome]) -> Verdict:
    """Check that K_hf = 1/σ = log((1−p)/p)/ε for every CLL row, whatever K_f is.

    The certificate says so by definition, for a loss that divides by the proved K_f. Training divided by an
    estimate K, so the check is whether K_f/(σK), the constant of the trained loss, is 1/σ to 5 %.
    """
    mine = [(row.run.k_f, row.k_f_in_training) for row in rows if row.run.loss == "cll"]
    k_f = [proved for proved, _ in mine]
    off = max(abs(proved / estimate - 1) for proved, estimate in mine if estimate is not None)
    found = f"K_hf is 1/σ to {100 * off:.1f} % with the last K, at K_f {min(k_f):,.1f} to {max(k_f):,.1f}"
    return Verdict(off < 0.05, found)


def _moved(low: Place, high: Place) -> bool | None:
    """Tell whether the seeds of one point all lie below those of another; None if they mingle."""
    if low.range.most < high.range.least:
        return True
    return False if high.range.most < low.range.least else None


def _all(parts: Sequence[bool | None]) -> bool | None:
    """Return False if one part is False, None if one is open, else True."""
    if False in parts:
        return False
    return None if None in parts else True


def _mean(place: Place) -> str:
    return percent(place.range.mean)
