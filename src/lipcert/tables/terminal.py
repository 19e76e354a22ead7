"""Tables for the terminal."""

from __future__ import annotations

from typing import TypeVar

from rich import table as rich_table
from rich.box import HEAVY_HEAD, SIMPLE_HEAD
from rich.text import Text

from lipcert.tables.table import Emphasis, Table

Row = TypeVar("Row")

_STYLES: dict[Emphasis, str | None] = {"": None, "best": "bold", "paper": None}


def terminal(table: Table[Row], *, is_narrow: bool = False, has_frame: bool = False) -> rich_table.Table:
    """Lay a table out for the terminal; a narrow one breaks its titles at spaces."""
    shown = rich_table.Table(
        title=Text(table.title) if table.title else None,
        caption=Text(table.note) if table.note else None,
        box=HEAVY_HEAD if has_frame else SIMPLE_HEAD,
        padding=(0, 1, 0, 0) if is_narrow else (0, 1),
    )
    for column in table.columns:
        title = column.title.replace(" ", "\n") if is_narrow else column.title
        shown.add_column(Text(title), justify="left" if column.kind.is_left else "right", overflow="fold")
    for row, cells in zip(table.rows, table.cells, strict=True):
        shown.add_row(*map(Text, cells), style=_STYLES[table.emphasis(row)])
    return shown
