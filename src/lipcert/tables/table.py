"""The one type of every table: rows are dataclasses, a column knows its title, its kind and its value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from lipcert.tables.kinds import TEXT, Kind, Value

Row = TypeVar("Row")

# How a row stands out: the best of a sweep, or one that the paper prints.
Emphasis = Literal["", "best", "paper"]


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One column; `value` takes it from a row."""

    title: str
    kind: Kind
    value: Callable[[Row], Value]

    def text(self, row: Row) -> str:
        """Write the value of a row."""
        return self.kind.text(self.value(row))


def _plain(row: object) -> Emphasis:
    return ""


@dataclass(frozen=True)
class Table(Generic[Row]):
    """Rows under columns; `name` is the name of its files, `note` stands below it."""

    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    name: str = ""
    title: str = ""
    note: str = ""
    emphasis: Callable[[Row], Emphasis] = _plain

    @property
    def titles(self) -> list[str]:
        """Return the titles of the columns."""
        return [column.title for column in self.columns]

    @property
    def cells(self) -> list[list[str]]:
        """Return the text of every row."""
        return [[column.text(row) for column in self.columns] for row in self.rows]


def text_table(titles: Sequence[str], cells: Sequence[Sequence[str]]) -> Table[Sequence[str]]:
    """Make a table of texts, such as a file of results holds.

    Example:
        >>> text_table(["a", "b"], [["1", "2"]]).cells
        [['1', '2']]
    """

    def column(i: int) -> Column[Sequence[str]]:
        return Column(titles[i], TEXT, lambda row: row[i])

    return Table([column(i) for i in range(len(titles))], cells)
