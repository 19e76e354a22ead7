"""A sweep summed up: one row for all seeds of a combination, and the best by validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lipcert.runs.measures import SECONDS, Measure, cra, measures_of
from lipcert.runs.rows import RunRow
from lipcert.sweeps.findings import SweepRow
from lipcert.tables import Column, Table
from lipcert.tables.grouping import grouped
from lipcert.tables.kinds import COUNT, SETTING
from lipcert.tables.table import Emphasis


@dataclass(frozen=True)
class Combination:
    """One combination of values, and its finished trainings."""

    values: Mapping[str, str]  # by key, without the seed
    runs: Sequence[RunRow]


def over_seeds(rows: Sequence[SweepRow]) -> list[Combination]:
    """Put the seeds of each combination together; unfinished trainings are left out."""

    def without_seed(row: SweepRow) -> tuple[tuple[str, str], ...]:
        return tuple((key, value) for key, value in row.values.items() if key != "seed")

    finished = [row for row in rows if row.found is not None]
    return [
        Combination(dict(values), [row.found for row in group if row.found is not None])
        for values, group in grouped(finished, without_seed).items()
    ]


def validation_measure(summary: Sequence[Combination]) -> Measure | None:
    """Return what chooses the best: certified accuracy on the validation split at its first radius."""
    runs = [run for combination in summary for run in combination.runs]
    return next((cra("val", run.splits["val"].radius) for run in runs if "val" in run.splits), None)


def best_of(summary: Sequence[Combination]) -> Combination | None:
    """Return the combination with the most certified accuracy on the validation split, if there is one."""
    measure = validation_measure(summary)
    if measure is None:
        return None
    means = [(found.mean, i) for i, c in enumerate(summary) if (found := measure.deviation(c.runs))]
    return summary[max(means, key=lambda pair: pair[0])[1]]


def summary_table(summary: Sequence[Combination], *, with_seconds: bool = False) -> Table[Combination]:
    """Lay out mean ± standard deviation of every measure; the best combination stands out."""
    measures = [
        measure
        for measure in measures_of([run for combination in summary for run in combination.runs])
        if with_seconds or measure != SECONDS
    ]
    keys = dict.fromkeys(key for combination in summary for key in combination.values)
    columns = [
        *(_key_column(key) for key in keys),
        Column("trainings", COUNT, lambda combination: len(combination.runs)),
        *(deviation_column(measure) for measure in measures),
    ]
    best, measure = best_of(summary), validation_measure(summary)
    note = ""
    if measure is not None:
        note = f"accuracies in %, mean ± standard deviation; bold: the most {measure.title}"

    def emphasis(combination: Combination) -> Emphasis:
        return "best" if combination is best else ""

    return Table(columns, summary, note=note, emphasis=emphasis)


def deviation_column(measure: Measure) -> Column[Combination]:
    """Make a column of mean ± standard deviation over the seeds."""
    return Column(measure.title, measure.kind, lambda combination: measure.deviation(combination.runs))


def _key_column(key: str) -> Column[Combination]:
    return Column(key, SETTING, lambda combination: combination.values.get(key))
