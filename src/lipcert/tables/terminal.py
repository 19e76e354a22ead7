"""Tables for the terminal; where one is too narrow for the columns, every row is a paragraph."""

from __future__ import annotations

import textwrap
from typing import TypeVar

from rich import table as rich_table
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.text import Text

from lipcert.tables.table import Column, Emphasis, Table

Row = TypeVar("Row")

_STYLES: dict[Emphasis, str | None] = {"": None, "best": "bold", "paper": None}

# Beyond so many columns titles are broken at spaces, for narrow terminals.
_FEW = 6

# A longer word, such as a path, may be folded.
_LONG_WORD = 24


def fitting(table: Table[Row], width: int) -> rich_table.Table | Text:
    """Lay a table out for a terminal of this width: as a table, or else row by row, so nothing is cut."""
    return terminal(table) if needed_width(table) <= width else paragraphs(table, width)


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


def needed_width(table: Table[Row]) -> int:
    """Return how many characters a table needs so that no number and no word is broken."""
    is_wide = len(table.columns) > _FEW
    by_column = zip(*table.cells, strict=True) if table.rows else ((),) * len(table.columns)
    widths = [_width(column, cells, is_wide) for column, cells in zip(table.columns, by_column, strict=True)]
    # The padding of each column, a space between two, and one at both ends.
    return sum(widths) + len(widths) * (1 if is_wide else 2) + len(widths) + 1


def _width(column: Column[Row], cells: tuple[str, ...], is_wide: bool) -> int:
    titles = column.title.split() if is_wide or column.kind.is_left else [column.title]
    if not column.kind.is_left:
        return max(map(cell_len, (*cells, *titles)))
    words = [word for text in (*cells, *titles) for word in text.split()]
    return max((min(cell_len(word), _LONG_WORD) for word in words), default=0)


def paragraphs(table: Table[Row], width: int) -> Text:
    """Lay out one paragraph per row: its first cell, then titles and cells."""
    shown = Text()
    for line in filter(None, [table.title]):
        shown.append(_filled(line, width, "") + "\n", style="italic")
    for row, (first, *cells) in zip(table.rows, table.cells, strict=True):
        parts = [f"{title} {cell}" for title, cell in zip(table.titles[1:], cells, strict=True)]
        heading = first if table.columns[0].kind.is_left else f"{table.titles[0]} {first}"
        text = f"{heading}: {'; '.join(parts)}" if parts else heading
        shown.append(_filled(text, width, "  ") + "\n", style=_STYLES[table.emphasis(row)])
    for line in table.note.splitlines():
        shown.append(_filled(line, width, "") + "\n", style="dim italic")
    shown.rstrip()
    return shown


def _filled(text: str, width: int, indent: str) -> str:
    """Fold a text into lines; a word that is longer than a line is left for the terminal to break."""
    return "\n".join(
        textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
    )
