"""The numbers of a figure as a table: one line per x and series, the means and ranges of the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lipcert.paper.outcome import Outcome
from lipcert.paper.printed_measures import CLEAN, FAR, NEAR
from lipcert.runs.measures import K_F, K_HF, TIGHTNESS, Measure, cra_at_eps
from lipcert.tables import Column, Table
from lipcert.tables.grouping import grouped
from lipcert.tables.kinds import SETTING, TEXT, Deviation, Range

_MEASURES = (
    CLEAN,
    cra_at_eps("test"),
    NEAR,
    FAR,
    K_F,
    K_HF,
    TIGHTNESS,
)


@dataclass(frozen=True)
class PlaceRow:
    """All seeds of one x of one series."""

    series: str
    x: float | None
    outcomes: Sequence[Outcome]


def curve_table(outcomes: Sequence[Outcome]) -> Table[PlaceRow]:
    """Lay out every measure that is known."""
    runs = [outcome.run for outcome in outcomes]
    groups = grouped(outcomes, lambda outcome: (outcome.series, outcome.x))
    columns: list[Column[PlaceRow]] = [
        Column("x", SETTING, lambda row: row.x),
        *(range_column(measure) for measure in _MEASURES if measure.numbers(runs)),
    ]
    if any(series for series, _ in groups):
        columns.insert(0, Column("series", TEXT, lambda row: row.series))
    return Table(columns, [PlaceRow(series, x, group) for (series, x), group in groups.items()])


def range_column(measure: Measure) -> Column[PlaceRow]:
    """Make a column of means with the seeds of each, or of single numbers."""
    return Column(measure.short_title, measure.kind, lambda row: range_or_mean(measure, row.outcomes))


def range_or_mean(measure: Measure, outcomes: Sequence[Outcome]) -> Range | Deviation | None:
    """Sum up a measure over seeds; a single seed has no range."""
    values = measure.numbers(outcome.run for outcome in outcomes)
    if len(values) < 2:
        return Deviation.of(values) if values else None
    return Range.of(values)
