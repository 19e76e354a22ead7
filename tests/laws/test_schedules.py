"""What every registered schedule obeys."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise

import pytest

from lipcert.train.schedules import SCHEDULES, Schedule

every_schedule = pytest.mark.parametrize("name", list(SCHEDULES))
START = 0.7
FRACTIONS = [step / 100 for step in range(101)]


@every_schedule
def test_it_is_finite_on_the_whole_training_and_changes(name: str) -> None:
    schedule = SCHEDULES.example(name)
    assert isinstance(schedule, Schedule)
    values = [schedule(START, t) for t in FRACTIONS]
    assert all(type(v) is float and math.isfinite(v) for v in values)
    assert len(set(values)) > 1


@every_schedule
def test_it_starts_and_ends_as_its_arguments_say(name: str) -> None:
    """`first` is the part of the value to start with, `end` the value to end with."""
    schedule = SCHEDULES.example(name)
    if hasattr(schedule, "first"):
        assert schedule(START, 0.0) == pytest.approx(schedule.first * START, rel=1e-12)
        assert schedule(START, 1.0) == START
    if hasattr(schedule, "end"):
        assert schedule(START, 0.0) == pytest.approx(START, rel=1e-12)
        assert schedule(START, 1.0) == pytest.approx(schedule.end, rel=1e-12)


@every_schedule
def test_it_resumes_by_the_fraction_alone(name: str) -> None:
    """A new process, or other values asked for before, change nothing."""
    schedule = SCHEDULES.example(name)
    forwards = [schedule(START, t) for t in FRACTIONS]
    again: Schedule = pickle.loads(pickle.dumps(schedule))
    assert [again(START, t) for t in reversed(FRACTIONS)] == forwards[::-1]
    assert again == schedule


@every_schedule
def test_it_only_rises_or_only_falls_between_its_knots(name: str) -> None:
    """So the values at the knots, the start and the end are the extremes."""
    schedule = SCHEDULES.example(name)
    assert all(0 < knot <= 1 for knot in schedule.knots)
    ends = sorted({0.0, *schedule.knots, 1.0})
    for low, high in pairwise(ends):
        values = [schedule(START, low + (high - low) * k / 50) for k in range(51)]
        if name == "multistep":
            values.pop()  # the value jumps at the knot
        steps = [b - a for a, b in pairwise(values)]
        assert all(s >= -1e-12 for s in steps) or all(s <= 1e-12 for s in steps), (low, high)
