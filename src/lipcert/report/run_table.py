"""Finished runs side by side, at the first radius of each."""

from __future__ import annotations

from collections.abc import Sequence

from lipcert.data.base import Split
from lipcert.runs.measures import K_F, K_HF, SECONDS, clean, cra
from lipcert.runs.rows import RunRow
from lipcert.tables import Column, Table
from lipcert.tables.kinds import EXACT_PERCENT, SETTING, TEXT

_NOTE = "accuracies in %; CRA: right and certified at ε, with proved bounds"


def run_table(rows: Sequence[RunRow]) -> Table[RunRow]:
    """Lay out loss or recipe, ε, slack, the accuracies of every certified split, constants and time."""
    order: tuple[Split, ...] = ("train", "val", "test")
    splits = [name for name in order if any(name in row.splits for row in rows)]
    columns: list[Column[RunRow]] = [
        Column("loss", TEXT, lambda row: row.loss),
        Column("ε", SETTING, lambda row: row.eps),
        Column("slack", SETTING, lambda row: row.slack),
    ]
    if len({(row.loss, row.eps, row.slack, row.seed) for row in rows}) < len(rows):
        columns[0] = Column("recipe", TEXT, lambda row: row.recipe)  # which differ in something else
    if len({row.seed for row in rows}) > 1:
        columns.append(Column("seed", SETTING, lambda row: row.seed))
    unseen = splits[-1]  # the one that training has not seen
    columns.append(Column(f"clean {unseen}", EXACT_PERCENT, clean(unseen).number))
    columns += [_cra_column(name, rows) for name in splits]
    columns += [measure.column(lambda row: row) for measure in (K_F, K_HF, SECONDS)]
    return Table(columns, rows, note=_NOTE)


def _cra_column(split: Split, rows: Sequence[RunRow]) -> Column[RunRow]:
    size = next(row.splits[split].samples for row in rows if split in row.splits)
    title = f"CRA {split} ({size:,})"
    return Column(title, EXACT_PERCENT, lambda row: cra(split, row.eps).number(row))
