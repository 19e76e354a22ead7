"""The numbers of a run that tables, curves and claims ask for, each with its title and its kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from lipcert.data.base import SPLITS, Split
from lipcert.runs.rows import RunRow
from lipcert.tables.kinds import CONSTANT, PERCENT, Deviation, Kind, Range, printed_radius
from lipcert.tables.kinds import SECONDS as SECONDS_KIND
from lipcert.tables.kinds import TIGHTNESS as TIGHTNESS_KIND
from lipcert.tables.table import Column

Row = TypeVar("Row")


@dataclass(frozen=True)
class Measure:
    """One number of a run; None where it was not measured. Two measures of one title are the same."""

    title: str
    kind: Kind = field(compare=False)
    number: Callable[[RunRow], float | None] = field(compare=False)

    @property
    def short_title(self) -> str:
        """Return the title without the split, for tables whose note names it."""
        head, _, rest = self.title.partition(" ")
        return rest if head in SPLITS else self.title

    def numbers(self, rows: Iterable[RunRow]) -> list[float]:
        """Return the numbers of the rows in which it was measured."""
        return [value for value in map(self.number, rows) if value is not None]

    def deviation(self, rows: Iterable[RunRow]) -> Deviation | None:
        """Return mean and standard deviation, None if it was measured in none of the rows."""
        values = self.numbers(rows)
        return Deviation.of(values) if values else None

    def range(self, rows: Iterable[RunRow]) -> Range | None:
        """Return mean, least and most, None if it was measured in none of the rows."""
        values = self.numbers(rows)
        return Range.of(values) if values else None

    def column(self, run: Callable[[Row], RunRow | None]) -> Column[Row]:
        """Make a column of rows that hold a run, or none yet."""

        def value(row: Row) -> float | None:
            found = run(row)
            return None if found is None else self.number(found)

        return Column(self.title, self.kind, value)


def clean(split: Split) -> Measure:
    """Measure the clean accuracy of a split."""

    def number(run: RunRow) -> float | None:
        return run.splits[split].clean if split in run.splits else None

    return Measure(f"{split} clean", PERCENT, number)


def cra(split: Split, radius: float) -> Measure:
    """Measure the certified accuracy of a split at a radius."""

    def number(run: RunRow) -> float | None:
        return run.splits[split].certified.get(radius) if split in run.splits else None

    return Measure(f"{split} CRA {printed_radius(radius)}", PERCENT, number)


def cra_at_eps(split: Split) -> Measure:
    """Measure the certified accuracy at the ε of the loss, where the run was certified there first."""

    def number(run: RunRow) -> float | None:
        is_there = run.loss_eps is not None and math.isclose(run.eps, run.loss_eps)
        return run.splits[split].cra if is_there and split in run.splits else None

    return Measure(f"{split} CRA at ε", PERCENT, number)


K_F = Measure("K_f", CONSTANT, lambda run: run.k_f)
K_HF = Measure("K_hf", CONSTANT, lambda run: run.k_hf)
TIGHTNESS = Measure("tightness", TIGHTNESS_KIND, lambda run: run.tightness)
SECONDS = Measure("seconds", SECONDS_KIND, lambda run: run.seconds)


def measures_of(rows: Sequence[RunRow]) -> list[Measure]:
    """List what was measured in any of the rows: accuracies by split and radius, constants, seconds."""
    found: dict[Measure, None] = {}
    for name in SPLITS:
        for split in (row.splits[name] for row in rows if name in row.splits):
            found |= dict.fromkeys([clean(name), *(cra(name, radius) for radius in split.certified)])
    return [m for m in (*found, K_F, K_HF, TIGHTNESS, SECONDS) if m.numbers(rows)]
