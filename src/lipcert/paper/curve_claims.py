"""Checks of how certified accuracy rises over the epochs of a training: how early, how smoothly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean

from lipcert.paper.claims import Check, moved
from lipcert.paper.outcome import Outcome
from lipcert.paper.verdict import Verdict, Word
from lipcert.tables.kinds import PERCENT, Range


def by_curve(
    first: str, second: str, number: Callable[[Outcome], float], what: str, is_less_better: bool = False
) -> Check:
    """Compare two series by a number of the curve of each training."""

    def check(outcomes: Sequence[Outcome]) -> Verdict:
        mine, theirs = ([o for o in outcomes if o.series == series] for series in (first, second))
        if not mine or not theirs:
            return Verdict(Word.NOT_RUN, "one of the two was not trained")
        if min(len(outcome.cra_by_epoch) for outcome in (*mine, *theirs)) < 2:
            return Verdict(Word.NOT_RUN, "one epoch shows no convergence")
        values = {first: [number(o) for o in mine], second: [number(o) for o in theirs]}
        shown = ", ".join(f"{name} {' and '.join(map(PERCENT.text, each))}" for name, each in values.items())
        pair = [Range.of(values[first]), Range.of(values[second])]
        low, high = pair if is_less_better else pair[::-1]
        return Verdict(Word.of(moved(low, high)), f"{what}, by seed: {shown}")

    return check


def early_mean(outcome: Outcome) -> float:
    """Return the mean over the validations of the first half of the training."""
    return fmean(outcome.cra_by_epoch[: len(outcome.cra_by_epoch) // 2])


def falls_added_up(outcome: Outcome) -> float:
    """Return how much the curve falls from one epoch to the next, added up; a smooth rise has none."""
    return sum(max(0.0, a - b) for a, b in pairwise(outcome.cra_by_epoch))
