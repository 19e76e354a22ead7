"""Tables that documents are rendered from, with what is needed to make them again."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from lipcert.environment import environment
from lipcert.report.recorded import RecordedTable


def read_table(name: str, note: str | None = None) -> list[list[str]]:
    """Return the cells of results/NAME.json; none if there is no such file, or if its note is another."""
    path = _path(name)
    found = RecordedTable.read(path) if path.exists() else None
    if found is None or note not in (None, found.note):
        return []
    return [list(row) for row in found.cells]


def write_table(
    name: str, note: str, titles: Sequence[str], table: Sequence[Sequence[str]], command: str = ""
) -> None:
    """results/NAME.json: the command that runs, or the one given, machine and commit beside the cells."""
    RecordedTable(
        command=command or shlex.join(["python", *sys.argv]),
        note=note,
        date=date.today().isoformat(),
        environment=environment(),
        titles=list(titles),
        cells=[list(row) for row in table],
    ).write(_path(name))


def _path(name: str) -> Path:
    return Path(__file__).parents[1] / "results" / f"{name}.json"
