"""Tables on narrow terminals: no number is cut, no word is broken."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pytest
from rich.console import Console

from lipcert.report.leaderboard import leaderboard, leaderboard_table
from lipcert.tables import Column, Table
from lipcert.tables.kinds import COUNT, PERCENT, TEXT
from lipcert.tables.table import text_table
from lipcert.tables.terminal import fitting, needed_width


@dataclass(frozen=True)
class Thing:
    name: str
    count: int
    share: float


THINGS = [Thing("a long name of words", 2_466_858, 0.557), Thing("another", 1, 1.0)]


def printed(table: Table[Thing], width: int) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(fitting(table, width))
    return file.getvalue()


def of_things(columns: int) -> Table[Thing]:
    count = [Column(f"number {i}", COUNT, lambda row: row.count) for i in range(columns)]
    share = Column("share", PERCENT, lambda row: row.share)
    return Table([Column("name", TEXT, lambda row: row.name), *count, share], THINGS, title="t", note="n")


@pytest.mark.parametrize("columns", [1, 3, 5, 8, 12])
@pytest.mark.parametrize("width", [30, 40, 60, 80, 120])
def test_every_number_is_whole_at_every_width(columns: int, width: int) -> None:
    out = printed(of_things(columns), width)
    assert out.count("2,466,858") == columns
    assert "55.7" in out
    assert all(word in out.split() for word in ["a", "long"])
    assert max(map(len, out.splitlines())) <= width


def test_a_table_that_fits_stays_a_table() -> None:
    table = of_things(2)
    assert "───" in printed(table, needed_width(table))
    assert "───" not in printed(table, needed_width(table) - 1)


def test_a_list_folds_its_texts_and_stays_a_table() -> None:
    table = text_table(["name", "what it is"], [("cll", "many words " * 20)])
    assert "───" in printed(table, 60)  # type: ignore[arg-type]
    assert "───" in printed(text_table(["a"], []), 60)  # type: ignore[arg-type]


def test_the_leaderboard_at_60_columns_has_its_names_and_numbers() -> None:
    for data, entries in leaderboard().items():
        out = printed(leaderboard_table(data, entries), 60)  # type: ignore[arg-type]
        assert all(entry.name in out and f"{entry.parameters:,}" in out for entry in entries)
