"""Finished runs side by side, at the first radius of each."""

from __future__ import annotations

from collections.abc import Sequence

from lipcert.data.base import SPLITS, Split, shown_split
from lipcert.recipes.budgets import with_remark
from lipcert.runs.measures import K_F, K_HF, SECONDS, clean, cra
from lipcert.runs.rows import RunRow
from lipcert.tables import Column, Table
from lipcert.tables.kinds import EXACT_PERCENT, SETTING, TEXT

_NOTE = (
    "accuracies in %; CRA: correct and certified at ε, with proved bounds; "
    "seconds: wall-clock time of the training"
)


def run_table(rows: Sequence[RunRow], budget: str | None = None) -> Table[RunRow]:
    """Lay out loss or recipe, ε, slack, the accuracies of every certified split, constants and time.

    A note tells if the budget is one whose figures say little.
    """
    splits = [name for name in SPLITS if any(name in row.splits for row in rows)]
    columns: list[Column[RunRow]] = [
        Column("loss", TEXT, lambda row: row.loss),
        Column("ε", SETTING, lambda row: row.eps),
        Column("slack", SETTING, lambda row: row.slack),
    ]
    if len({(row.loss, row.eps, row.slack, row.seed) for row in rows}) < len(rows):
        columns[0] = Column("recipe", TEXT, lambda row: row.recipe)  # which differ in something else
    if len({row.seed for row in rows}) > 1:
        columns.append(Column("seed", SETTING, lambda row: row.seed))
    unseen = shown_split(splits)
    columns.append(Column(f"clean {unseen}", EXACT_PERCENT, clean(unseen).number))
    columns += [_cra_column(name, rows) for name in splits]
    columns += [measure.column(lambda row: row) for measure in (K_F, K_HF, SECONDS)]
    return Table(columns, rows, note=with_remark(_NOTE, budget))


def _cra_column(split: Split, rows: Sequence[RunRow]) -> Column[RunRow]:
    size = next(row.splits[split].samples for row in rows if split in row.splits)
    title = f"CRA {split} ({size:,})"
    return Column(title, EXACT_PERCENT, lambda row: cra(split, row.eps).number(row))
