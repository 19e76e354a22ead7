"""Checks of the paper's claims in rows: does a column rise, does it stay, which series is ahead.

A difference counts if it is larger than the spread of the seeds at either end; otherwise the two are level
within the seeds. What was not measured is not run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from lipcert.paper.outcome import Outcome, Place, places, series_of
from lipcert.paper.verdict import Consistency, Verdict, Word
from lipcert.runs.measures import Measure
from lipcert.tables.kinds import (
    CONSTANT,
    FINE_FOLD,
    FINE_POINTS,
    FOLD,
    GROUPED_CONSTANT,
    SETTING,
    SIGNED,
    Kind,
    Range,
    percent,
)

Check = Callable[[Sequence[Outcome]], Verdict]

POINT = 0.01  # a percentage point: the smallest difference of accuracies that one seed can show


def trades(falling: Measure, rising: Measure, series: str = "") -> Check:
    """Check that from the least x to the greatest one column falls and another rises."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        down, up = (places(rows, series, measure) for measure in (falling, rising))
        if min(len(down), len(up)) < 2:
            return Verdict(Word.NOT_RUN, "fewer than two places were measured")
        fell = moved(down[-1].range, down[0].range)
        rose = moved(up[0].range, max(up[1:], key=lambda p: p.range.least).range)
        best = max(up, key=lambda p: p.range.mean)
        found = (
            f"{falling.title} {_mean(down[0])} → {_mean(down[-1])}; {rising.title} {_mean(up[0])} → "
            f"{_mean(up[-1])}, most ({_mean(best)}) at {SETTING.text(best.x)}"
        )
        return Verdict(all_of([fell, rose]), found)

    return check


def trades_everywhere(falling: Measure, rising: Measure) -> Check:
    """Check in every series that from the least x to the greatest one column falls and another rises."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        series = series_of(rows)
        verdicts = [trades(falling, rising, one)(rows) for one in series]
        found = "; ".join(f"{one}: {verdict.found}" for one, verdict in zip(series, verdicts, strict=True))
        return Verdict(worst([verdict.word for verdict in verdicts]), found or "nothing was trained")

    return check


def peaks(measure: Measure, series: str = "") -> Check:
    """Check that a column is lower at the greatest x than at its best before."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        found = places(rows, series, measure)
        if len(found) < 3:
            return Verdict(Word.NOT_RUN, "fewer than three places were measured")
        best = max(found[:-1], key=lambda p: p.range.mean)
        listed = f"{_mean(best)} at {SETTING.text(best.x)}, {_mean(found[-1])} at {SETTING.text(found[-1].x)}"
        return Verdict(Word.of(moved(found[-1].range, best.range)), listed)

    return check


def best_at(measure: Measure, x: float, series: str) -> Check:
    """Check that a column is larger at one x than at every other."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        found = places(rows, series, measure)
        mine = [p for p in found if p.x == x]
        others = [p for p in found if p.x != x]
        if not mine or not others:
            return Verdict(
                Word.NOT_RUN, f"{measure.title} was not measured at {SETTING.text(x)} and elsewhere"
            )
        listed = ", ".join(f"{_mean(p)} at {SETTING.text(p.x)}" for p in found)
        return Verdict(all_of([moved(p.range, mine[0].range) for p in others]), listed)

    return check


def better_at(measure: Measure, x: float, other: float, series: str = "") -> Check:
    """Check that a column is larger at one x than at another."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        found = {p.x: p for p in places(rows, series, measure)}
        if x not in found or other not in found:
            return Verdict(Word.NOT_RUN, "not both of the places were measured")
        listed = " and ".join(f"{_mean(found[place])} at {SETTING.text(place)}" for place in (x, other))
        return Verdict(Word.of(moved(found[other].range, found[x].range)), listed)

    return check


def falls(measure: Measure, series: str = "") -> Check:
    """Check that a column of constants falls from every x to the next."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        found = places(rows, series, measure)
        if len(found) < 2:
            return Verdict(Word.NOT_RUN, "fewer than two places were measured")
        ends = " to ".join(
            f"{GROUPED_CONSTANT.text(p.range.mean)} at {SETTING.text(p.x)}" for p in (found[0], found[-1])
        )
        word = all_of([moved(after.range, before.range) for before, after in pairwise(found)])
        return Verdict(word, f"{measure.title} {ends}, {len(found)} places")

    return check


def by_slack(check: Check) -> Check:
    """Let a check of rows over ε look at them over the slack instead: one series per ε."""

    def turned(rows: Sequence[Outcome]) -> Verdict:
        return check([replace(row, series=f"ε = {row.x:g}", x=row.run.slack) for row in rows])

    return turned


def ahead(measure: Measure, first: str, second: str) -> Check:
    """Check that at every x one series is above another; shown in percentage points, or as it is."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        mine, theirs = (places(rows, series, measure) for series in (first, second))
        if not mine or [p.x for p in mine] != [p.x for p in theirs]:
            return Verdict(Word.NOT_RUN, f"{measure.title} was not measured for both at the same places")
        pairs = {f"at {SETTING.text(a.x)}": (a.range, b.range) for a, b in zip(mine, theirs, strict=True)}
        return compared(pairs, measure.kind, f"{first} less {second}")

    return check


def improves(
    measure: Measure,
    rivals: Mapping[str, str],
    names: Mapping[str, str] | None = None,
    what: str = "CLL less its rival",
) -> Check:
    """Check that every CLL recipe is above its rival; `names` says what to call the recipes."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        pairs = _pairs(rows, measure, rivals)
        if pairs is None:
            return _UNPAIRED
        named = {(names or {}).get(mine, mine): pair for mine, pair in pairs.items()}
        return compared(named, measure.kind, what)

    return check


_UNPAIRED = Verdict(Word.NOT_RUN, "not every recipe and its rival were trained")
_Pairs = Mapping[str, tuple[Range, Range]]


def _pairs(rows: Sequence[Outcome], measure: Measure, rivals: Mapping[str, str]) -> _Pairs | None:
    """Return the seeds of every recipe and of its rival, by recipe; None if one of them is missing."""

    def found(recipe: str) -> Range | None:
        return measure.range(row.run for row in rows if row.run.recipe == recipe)

    both = {mine: (found(mine), found(rival)) for mine, rival in rivals.items()}
    pairs = {mine: (a, b) for mine, (a, b) in both.items() if a is not None and b is not None}
    return pairs if len(pairs) == len(rivals) else None


def no_better(measures: Sequence[Measure], rivals: Mapping[str, str]) -> Check:
    """Check that no recipe is above its rival in any measure, beyond the spread of the seeds."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        ahead_of, listed = [], []
        for measure in measures:
            pairs = _pairs(rows, measure, rivals)
            if pairs is None:
                return _UNPAIRED
            for mine, theirs in pairs.values():
                ahead_of.append(beyond_seeds(theirs, mine))
                listed.append(f"{measure.title} {_difference(measure, mine.mean - theirs.mean)}")
        return Verdict(Word.of(True not in ahead_of), f"CLL less its rival: {', '.join(listed)}")

    return check


def gains_more(measure: Measure, first: Mapping[str, str], second: Mapping[str, str]) -> Check:
    """Check that every recipe of the first group gains more over its rival than any of the second.

    Means are compared. Gains that differ by a point or less are level.
    """

    def check(rows: Sequence[Outcome]) -> Verdict:
        groups = [_pairs(rows, measure, rivals) for rivals in (first, second)]
        gains = [[a.mean - b.mean for a, b in pairs.values()] for pairs in groups if pairs is not None]
        if len(gains) < 2:
            return _UNPAIRED
        large, small = gains
        shown = [" and ".join(_difference(measure, gain) for gain in group) for group in gains]
        holds = moved(Range.of(small), Range.of(large), POINT)
        return Verdict(Word.of(holds), f"{measure.title}: {shown[0]} against {shown[1]}")

    return check


def similar(measure: Measure, rivals: Mapping[str, str], factor: float) -> Check:
    """Check that the means of every recipe and its rival are at most so many times one another."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        pairs = _pairs(rows, measure, rivals)
        if pairs is None:
            return _UNPAIRED
        means = [(mine.mean, theirs.mean) for mine, theirs in pairs.values()]
        listed = ", ".join(f"{CONSTANT.text(a)} against {CONSTANT.text(b)}" for a, b in means)
        found = f"{measure.title} {listed} ({SETTING.text(factor)}-fold allowed)"
        return Verdict(Word.of(all(max(pair) <= factor * min(pair) for pair in means)), found)

    return check


def _difference(measure: Measure, difference: float) -> str:
    return SIGNED.text(measure.kind.scale * difference)


def compared(
    pairs: Mapping[str, tuple[Range, Range]], kind: Kind, what: str, point: float | None = None
) -> Verdict:
    """Judge whether the first of every pair is above the second, beyond the spread of the seeds.

    One seed has no spread: accuracies that differ by a `point` or less from it then count as level.
    """
    if point is None and kind.scale == 100:
        point = 1 / kind.scale
    blur = 0.0 if point is None else point
    parts = [beyond_seeds(theirs, mine, blur) for mine, theirs in pairs.values()]
    several = min(len(one.values) for pair in pairs.values() for one in pair) > 1
    listed = ", ".join(
        f"{name} {SIGNED.text(kind.scale * (mine.mean - theirs.mean))}"
        for name, (mine, theirs) in pairs.items()
    )
    found = f"{what}: {listed}"
    if several:
        clear = f"{parts.count(True)} ahead and {parts.count(False)} behind"
        found += f"; of {len(parts)}, {clear} beyond the seeds"
    elif blur:
        found += "; one seed, so a point or less counts as level"
    return Verdict(all_of(parts), found)


def beats(measures: Sequence[Measure], better: tuple[str, float], other: tuple[str, float]) -> Check:
    """Check that one place, a series and an x, is not behind another in any measure and ahead in one."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        pairs = {}
        for measure in measures:
            mine, theirs = (_range_at(rows, place, measure) for place in (better, other))
            if mine is None or theirs is None:
                return Verdict(Word.NOT_RUN, "not both of the places were measured")
            pairs[measure] = mine, theirs
        parts = [
            beyond_seeds(theirs, mine, POINT if measure.kind.scale == 100 else 0.0)
            for measure, (mine, theirs) in pairs.items()
        ]
        holds = False if False in parts else True if True in parts else None
        listed = ", ".join(
            f"{measure.title} {_difference(measure, mine.mean - theirs.mean)}"
            for measure, (mine, theirs) in pairs.items()
        )
        (name, x), (other_name, other_x) = better, other
        return Verdict(Word.of(holds), f"ε = {x:g}, {name} less ε = {other_x:g}, {other_name}: {listed}")

    return check


def _range_at(rows: Sequence[Outcome], place: tuple[str, float], measure: Measure) -> Range | None:
    series, x = place
    return next((p.range for p in places(rows, series, measure) if p.x == x), None)


def steadier(measure: Measure, first: str, second: str) -> Check:
    """Check that over all x one series of constants changes by a smaller factor than another.

    Any smaller factor of the means counts.
    """

    def check(rows: Sequence[Outcome]) -> Verdict:
        folds = []
        for series in (first, second):
            means = [p.range.mean for p in places(rows, series, measure)]
            if len(means) < 2:
                return Verdict(Word.NOT_RUN, f"{measure.title} was not measured for both")
            folds.append(max(means) / min(means))
        shown = [FOLD.text(fold) for fold in folds]
        changes = f"{measure.title} of {first} changes {shown[0]}, of {second} {shown[1]}"
        found = f"{changes} (any smaller factor counts)"
        return Verdict(Word.of(folds[0] < folds[1]), found)

    return check


def insensitive(measure: Measure, low: float, high: float, points: float) -> Check:
    """Check that within a range of x the means stay within so many percentage points."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        inside = [p for p in places(rows, "", measure) if low <= p.x <= high]
        if len(inside) < 2:
            return Verdict(Word.NOT_RUN, "fewer than two places were measured")
        means = [p.range.mean for p in inside]
        low_x, high_x = (SETTING.text(p.x) for p in (inside[0], inside[-1]))
        found = (
            f"{percent(min(means))} to {percent(max(means))} from {low_x} to {high_x} "
            f"({SETTING.text(points)} points allowed)"
        )
        return Verdict(Word.of(100 * (max(means) - min(means)) <= points), found)

    return check


def falls_outside(measure: Measure, low: float, high: float) -> Check:
    """Check that at either end a column is lower than anywhere within a range of x."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        points = places(rows, "", measure)
        inside = [p for p in points if low <= p.x <= high]
        if not inside or len(inside) > len(points) - 2:
            return Verdict(Word.NOT_RUN, "no place within, or none beyond either end, was measured")
        least = min(inside, key=lambda p: p.range.mean)
        ends = [points[0], points[-1]]
        listed = " and ".join(f"{_mean(p)} at {SETTING.text(p.x)}" for p in ends)
        word = all_of([moved(p.range, least.range) for p in ends])
        return Verdict(word, f"{listed}; least between {_mean(least)}")

    return check


def constant(measure: Measure, factor: float) -> Check:
    """Check that the largest mean of a column is at most so many times the smallest."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        means = [p.range.mean for p in places(rows, "", measure)]
        if len(means) < 2:
            return Verdict(Word.NOT_RUN, "fewer than two places were measured")
        ratio = max(means) / min(means)
        low, high = CONSTANT.text(min(means)), CONSTANT.text(max(means))
        found = (
            f"{measure.title} {low} to {high}, {FINE_FOLD.text(ratio)} ({SETTING.text(factor)}-fold allowed)"
        )
        return Verdict(Word.of(ratio <= factor), found)

    return check


def seeds_agree(measure: Measure, points: float) -> Check:
    """Check that the standard deviation over the seeds of every recipe is at most so many points."""

    def check(rows: Sequence[Outcome]) -> Verdict:
        recipes = dict.fromkeys(row.run.recipe for row in rows)
        found = {
            recipe: measure.deviation(row.run for row in rows if row.run.recipe == recipe)
            for recipe in recipes
        }
        spread = [one.deviation for one in found.values() if one is not None and one.deviation is not None]
        if not spread:
            return Verdict(Word.NOT_RUN, "no recipe was trained with several seeds")
        scaled = measure.kind.scale * max(spread)
        return Verdict(
            Word.of(scaled <= points), f"at most {FINE_POINTS.text(scaled)} over {len(spread)} recipes"
        )

    return check


def scale_sets_khf(rows: Sequence[Outcome]) -> Consistency:
    """Check that K_hf = 1/σ = log((1−p)/p)/ε for every CLL row, whatever K_f is.

    The certificate says so by definition, for a loss that divides by the proved K_f. Training divided by an
    estimate K, so what can go wrong is the estimate: K_f/(σK), the constant of the trained loss, must be 1/σ
    to 5 %.
    """
    mine = [(row.run.k_f, row.k_f_in_training) for row in rows if row.run.loss == "cll"]
    k_f = [proved for proved, _ in mine]
    off = max(abs(proved / estimate - 1) for proved, estimate in mine if estimate is not None)
    low, high = GROUPED_CONSTANT.text(min(k_f)), GROUPED_CONSTANT.text(max(k_f))
    found = f"K_hf is 1/σ to {percent(off)} with the last K, at K_f {low} to {high}"
    return Consistency(off < 0.05, found)


def moved(low: Range, high: Range, blur: float = 0.0) -> bool | None:
    """Tell whether the seeds of one place all lie below those of another; None if they mingle.

    Values closer than `blur` mingle too.
    """
    if low.most + blur < high.least:
        return True
    return False if high.most + blur < low.least else None


def beyond_seeds(low: Range, high: Range, point: float = POINT) -> bool | None:
    """Tell as `moved` does; where one of the two has a single seed, values within a `point` mingle."""
    return moved(low, high, point if min(len(low.values), len(high.values)) == 1 else 0.0)


def all_of(parts: Sequence[bool | None]) -> Word:
    """Return the word for several parts: one that fails decides, then one that is level."""
    return worst([Word.of(part) for part in parts])


# From the worst: what fails decides, then what is missing, then what is level.
_WORST = (Word.FAILS, Word.NOT_RUN, Word.LEVEL, Word.HOLDS)


def worst(words: Sequence[Word]) -> Word:
    """Return the word that decides; nothing at all is not run."""
    return min(words, key=_WORST.index, default=Word.NOT_RUN)


def _mean(place: Place) -> str:
    return percent(place.range.mean)
