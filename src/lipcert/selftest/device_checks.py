"""The checks of a self-test: one row each, as a table and as a file to attach to a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from lipcert.atomic import write_atomically
from lipcert.environment import Environment
from lipcert.tables import Column, Table
from lipcert.tables.grouping import grouped
from lipcert.tables.kinds import COUNT, DEVIATION, FINE_SECONDS, SHARE, TEXT

Outcome = Literal["passed", "failed", "skipped"]

# The numbers that a check computes with; a proof has every rounding error in it.
Numbers = Literal["float32", "float64", "bf16-mixed", "16-mixed", "proved"]


class Check(BaseModel):
    """One check: how far the device is from the CPU in float64, and how far it may be."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: str
    name: str
    precision: Numbers
    outcome: Outcome
    deviation: float | None = None
    allowed: float | None = None
    note: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Group:
    """The checks of one kind and precision."""

    kind: str
    precision: Numbers
    checks: Sequence[Check]

    def count(self, outcome: Outcome) -> int:
        """Count the checks that ended so."""
        return sum(check.outcome == outcome for check in self.checks)

    @property
    def largest(self) -> tuple[float, float] | None:
        """Return the deviation that is the largest share of what is allowed, and that share."""
        measured = [(c.deviation, c.allowed) for c in self.checks if c.deviation is not None and c.allowed]
        return max(((d, d / allowed) for d, allowed in measured), key=lambda pair: pair[1], default=None)


class SelfTest(BaseModel):
    """All checks of one device."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    device: str
    environment: Environment
    checks: tuple[Check, ...]

    @property
    def failed(self) -> list[Check]:
        """Return the checks that did not pass."""
        return [check for check in self.checks if check.outcome == "failed"]

    def save(self, path: Path) -> None:
        """Write everything as JSON."""
        write_atomically(path, (self.model_dump_json(indent=2) + "\n").encode())

    def summary(self) -> Table[Group]:
        """Return one row per kind and precision: how many passed, and the largest part of what is allowed."""
        groups = grouped(self.checks, lambda check: (check.kind, check.precision))
        columns: list[Column[Group]] = [
            Column("kind", TEXT, lambda group: group.kind),
            Column("precision", TEXT, lambda group: group.precision),
            Column("passed", COUNT, lambda group: group.count("passed")),
            Column("failed", COUNT, lambda group: group.count("failed")),
            Column("skipped", COUNT, lambda group: group.count("skipped")),
            Column("largest deviation", DEVIATION, lambda group: group.largest and group.largest[0]),
            Column("of what is allowed", SHARE, lambda group: group.largest and group.largest[1]),
        ]
        return Table(columns, [Group(*key, checks) for key, checks in groups.items()])

    def failures(self) -> Table[Check]:
        """Return one row per check that did not pass."""
        columns: list[Column[Check]] = [
            Column("kind", TEXT, lambda check: check.kind),
            Column("name", TEXT, lambda check: check.name),
            Column("precision", TEXT, lambda check: check.precision),
            Column("deviation", DEVIATION, lambda check: check.deviation),
            Column("allowed", DEVIATION, lambda check: check.allowed),
            Column("what happened", TEXT, lambda check: check.note),
            Column("seconds", FINE_SECONDS, lambda check: check.seconds),
        ]
        return Table(columns, self.failed, title="failed")
