"""Questions that claims of the paper put to rows: does it rise, does it stay, who is ahead.

A difference counts if it is larger than the seeds at either end are apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lipcert.report.curves import spread
from lipcert.report.rows import Row
from lipcert.reproductions.definition import Verdict

Check = Callable[[Sequence[Row]], Verdict]


def trades(falling: str, rising: str, series: str = "") -> Check:
    """From the least x to the greatest, one column falls and another rises."""

    def check(rows: Sequence[Row]) -> Verdict:
        down, up = (spread(rows, series, column) for column in (falling, rising))
        fell = down[-1][3] < down[0][1]
        rose = max(p[1] for p in up[1:]) > up[0][3]
        best = max(up, key=lambda p: p[2])
        found = (
            f"{falling} {_percent(down[0][2])} → {_percent(down[-1][2])}; {rising} {_percent(up[0][2])} → "
            f"{_percent(up[-1][2])}, most ({_percent(best[2])}) at {best[0]:g}"
        )
        return Verdict(fell and rose, found)

    return check


def ahead(column: str, first: str, second: str, scale: float = 100.0) -> Check:
    """At every x the mean of one series is above that of another; shown in percentage points, or as it is."""

    def check(rows: Sequence[Row]) -> Verdict:
        mine, theirs = (spread(rows, series, column) for series in (first, second))
        gaps = {a[0]: a[2] - b[2] for a, b in zip(mine, theirs, strict=True)}
        clear = sum(a[1] > b[3] for a, b in zip(mine, theirs, strict=True))
        listed = ", ".join(f"{x:g}: {scale * gap:+.1f}" for x, gap in gaps.items())
        found = f"{first} less {second} at {listed}; beyond the spread of the seeds at {clear} of {len(gaps)}"
        return Verdict(all(gap > 0 for gap in gaps.values()), found)

    return check


def insensitive(column: str, low: float, high: float, points: float) -> Check:
    """Within a range of x the means stay within so many percentage points, and fall outside."""

    def check(rows: Sequence[Row]) -> Verdict:
        all_ = spread(rows, "", column)
        inside = [p[2] for p in all_ if low <= p[0] <= high]
        outside = [(p[0], p[2]) for p in all_ if not low <= p[0] <= high]
        width = 100 * (max(inside) - min(inside))
        beyond = ", ".join(f"{x:g}: {_percent(y)}" for x, y in outside)
        found = (
            f"{_percent(min(inside))} to {_percent(max(inside))} from {low:g} to {high:g}; outside {beyond}"
        )
        return Verdict(width <= points, found)

    return check


def constant(column: str, factor: float) -> Check:
    """The largest mean of a column is at most so many times the smallest."""

    def check(rows: Sequence[Row]) -> Verdict:
        means = [p[2] for p in spread(rows, "", column)]
        ratio = max(means) / min(means)
        return Verdict(ratio <= factor, f"{column} {min(means):.1f} to {max(means):.1f}, {ratio:.2f}-fold")

    return check


def scale_sets_khf(rows: Sequence[Row]) -> Verdict:
    """K_hf = 1/σ = log((1−p)/p)/ε for every CLL row, whatever K_f is.

    The certificate says so by definition, for a loss that divides by the proved K_f. Training divided by an
    estimate K, so what is asked is whether K_f/(σK), the constant of what was trained, is 1/σ to 5 %.
    """
    mine = [row for row in rows if row["loss"] == "cll"]
    k_f = [row["k_f"] for row in mine]
    off = max(abs(row["k_f"] / row["K_f in training"] - 1) for row in mine)
    found = f"K_hf is 1/σ to {100 * off:.1f} % with the last K, at K_f {min(k_f):.1f} to {max(k_f):.1f}"
    return Verdict(off < 0.05, found)


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
