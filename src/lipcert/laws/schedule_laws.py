"""The laws of every schedule."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise

from lipcert.laws.law import expect, laws_of_registry
from lipcert.train.schedules import SCHEDULES, Schedule

SCHEDULE_LAWS = laws_of_registry("schedules", SCHEDULES, SCHEDULES.example)

START = 0.7
_FRACTIONS = [step / 100 for step in range(101)]


@SCHEDULE_LAWS.add()
def it_is_finite_on_the_whole_training_and_changes(schedule: Schedule) -> None:
    """Evaluate it at every hundredth of the training."""
    expect(isinstance(schedule, Schedule), f"expected a Schedule, found {type(schedule).__name__}")
    for t in _FRACTIONS:
        value = schedule(START, t)
        expect(
            type(value) is float and math.isfinite(value),
            f"expected a finite float at {t:g}, found {value!r}",
        )
    expect(len({schedule(START, t) for t in _FRACTIONS}) > 1, "the value never changes")


@SCHEDULE_LAWS.add()
def it_starts_and_ends_as_its_arguments_say(schedule: Schedule) -> None:
    """Check `first`, the part of the value to start with, and `end`, the value to end with."""
    if hasattr(schedule, "first"):
        _expect_value(schedule, 0.0, schedule.first * START)
        _expect_value(schedule, 1.0, START)
    if hasattr(schedule, "end"):
        _expect_value(schedule, 0.0, START)
        _expect_value(schedule, 1.0, schedule.end)


def _expect_value(schedule: Schedule, t: float, expected: float) -> None:
    found = schedule(START, t)
    close = math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12)
    expect(close, f"expected {expected:g} at fraction {t:g}, found {found:g}")


@SCHEDULE_LAWS.add()
def it_resumes_by_the_fraction_alone(schedule: Schedule) -> None:
    """Repeat it in another order, after a way through a file."""
    forwards = [schedule(START, t) for t in _FRACTIONS]
    again = pickle.loads(pickle.dumps(schedule))
    backwards = [again(START, t) for t in reversed(_FRACTIONS)]
    expect(backwards == forwards[::-1], "values depend on what was asked before")
    expect(again == schedule, "a pickled copy is not equal; decorate the class with @dataclass(frozen=True)")


@SCHEDULE_LAWS.add()
def it_only_rises_or_only_falls_between_its_knots(schedule: Schedule) -> None:
    """Evaluate it between knots, so that values at knots, start and end are the extremes."""
    expect(
        all(0 < knot <= 1 for knot in schedule.knots), f"knots: expected fractions, found {schedule.knots}"
    )
    for low, high in pairwise(sorted({0.0, *schedule.knots, 1.0})):
        values = [schedule(START, low + (high - low) * k / 50) for k in range(51)]
        steps = [b - a for a, b in pairwise(values)]
        one_way = all(s >= -1e-12 for s in steps) or all(s <= 1e-12 for s in steps)
        expect(one_way, f"rises and falls between {low:g} and {high:g}; its `knots` name every turn")
