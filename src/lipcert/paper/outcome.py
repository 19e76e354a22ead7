"""The outcome of one training of a reproduction: its numbers, and its place in a table or figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lipcert.paper.definition import Variant
from lipcert.runs.measures import Measure
from lipcert.runs.rows import RunRow, row_of
from lipcert.sweeps import Trial
from lipcert.tables.grouping import grouped
from lipcert.tables.kinds import Range


@dataclass(frozen=True)
class Outcome:
    """One finished training."""

    run: RunRow
    series: str = ""
    x: float | None = None
    k_f_in_training: float | None = None  # the last estimate
    cra_by_epoch: tuple[float, ...] = ()  # estimated, on the validation split


def outcome_of(variant: Variant, trial: Trial) -> Outcome:
    """Read what a finished training found."""
    metrics = trial.run.metrics()
    by_epoch = tuple(m.validation.val_cra_estimate for m in metrics if m.validation is not None)
    return Outcome(row_of(trial.run), variant.series, variant.x, metrics[-1].k_f, by_epoch)


@dataclass(frozen=True)
class Place:
    """One x of one series, and what the seeds found there."""

    x: float
    range: Range


def places(outcomes: Sequence[Outcome], series: str, measure: Measure) -> list[Place]:
    """Return the range of a measure over the seeds at every x of a series, x rising."""
    mine = [o for o in outcomes if o.series == series and o.x is not None]
    found = [
        (x, measure.range(o.run for o in group)) for x, group in grouped(mine, lambda o: o.x or 0.0).items()
    ]
    return sorted((Place(x, value) for x, value in found if value is not None), key=lambda place: place.x)


def series_of(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the series in the order in which they occur."""
    return list(dict.fromkeys(outcome.series for outcome in outcomes))
