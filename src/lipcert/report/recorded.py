"""Tables that benchmarks record: texts, with what is needed to measure them again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lipcert.atomic import write_json
from lipcert.environment import Environment
from lipcert.tables import Table
from lipcert.tables.table import text_table


@dataclass(frozen=True)
class RecordedTable:
    """A file results/NAME.json: the command that wrote it, machine and commit beside the cells."""

    command: str
    note: str
    date: str
    environment: Environment
    titles: Sequence[str]
    cells: Sequence[Sequence[str]]

    @property
    def table(self) -> Table[Sequence[str]]:
        """Return the cells as they are."""
        return text_table(self.titles, self.cells)

    @property
    def source(self) -> str:
        """Say how the cells were measured."""
        made = self.environment
        return f"`{self.command}`, {made.machine}, {self.date}, commit {made.commit}: {self.note}."

    def write(self, path: Path) -> None:
        """Write the file, all or nothing."""
        tree = {**asdict(self), "environment": self.environment.model_dump()}
        tree["table"] = tree.pop("cells")
        write_json(path, tree)

    @classmethod
    def read(cls, path: Path) -> RecordedTable | None:
        """Read a file; None if it holds the rows of a reproduction instead."""
        found = json.loads(path.read_text(encoding="utf-8"))
        if "table" not in found:
            return None
        made = Environment.model_validate(found["environment"])
        return cls(found["command"], found["note"], found["date"], made, found["titles"], found["table"])
