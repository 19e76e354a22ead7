"""Tables for the terminal."""

from __future__ import annotations

from typing import TypeVar

from rich import table as rich_table
from rich.box import SIMPLE_HEAD
from rich.text import Text

from lipcert.tables.table import Emphasis, Table

Row = TypeVar("Row")

_STYLES: dict[Emphasis, str | None] = {"": None, "best": "bold", "paper": None}

# Beyond so many columns titles are broken at spaces, for narrow terminals.
_FEW = 6


def terminal(table: Table[Row]) -> rich_table.Table:
    """Lay a table out for the terminal: long texts are folded, numbers never."""
    is_wide = len(table.columns) > _FEW
    shown = rich_table.Table(
        title=Text(table.title) if table.title else None,
        caption=Text(table.note) if table.note else None,
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0) if is_wide else (0, 1),
    )
    for column in table.columns:
        shown.add_column(
            Text(column.title.replace(" ", "\n") if is_wide else column.title),
            justify="left" if column.kind.is_left else "right",
            no_wrap=not column.kind.is_left,
            overflow="fold",
        )
    for row, cells in zip(table.rows, table.cells, strict=True):
        shown.add_row(*map(Text, cells), style=_STYLES[table.emphasis(row)])
    return shown
