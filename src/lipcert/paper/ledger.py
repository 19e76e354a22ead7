"""A row for every claim, table and figure of the paper, with the verdict of what was run here.

Documents print verdicts from these rows alone, so that no page can contradict another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lipcert.paper.definition import REPRODUCTIONS, Claim
from lipcert.paper.results import Results, judge
from lipcert.paper.verdict import Finding, Verdict, Word
from lipcert.report.recorded import RecordedTable
from lipcert.tables import Column, Table
from lipcert.tables.kinds import HOURS, TEXT

SETTINGS = "settings, no claim"
ESTIMATES = "gpu-hours"  # the recorded table of how long the full budgets would take
NO_TRAINING = "no training"
COUNTED = "tests/recipes/test_paper_rows.py -k parameters"
COMPUTED = "tests/paper/test_formula_claims.py"
ESTIMATES_HEADING = "How long the full budgets would take"


@dataclass(frozen=True)
class LedgerRow:
    """One claim, table or figure; `finding` is None where the paper prints settings and claims nothing."""

    place: str
    claim: str
    paper: str
    here: str
    finding: Finding | None
    setting: str = ""  # budget, width, epochs and seeds of what was run
    command: str = ""
    heading: str = ""  # names the section with the details

    @property
    def said(self) -> str:
        """Return the verdict as printed."""
        return SETTINGS if self.finding is None else self.finding.said


@dataclass(frozen=True)
class RecordedClaim:
    """A statement of the paper that is checked in a table which a benchmark recorded."""

    text: str
    published: str
    name: str  # names the file in results/
    width: str  # how wide its networks are
    check: Callable[[RecordedTable], Verdict]


@dataclass(frozen=True)
class Part:
    """A table or figure of the paper, or a statement of its text, and where its claims are checked.

    `evidence` names the results: by default those of the reproduction. Without any, nothing of it was run.
    """

    place: str
    reproduction: str = ""
    heading: str = ""
    evidence: tuple[str, ...] | None = None
    claims: tuple[Claim, ...] = ()  # besides those of the reproduction
    recorded: tuple[RecordedClaim, ...] = ()
    untrained: tuple[Claim, ...] = ()  # checked without any training
    checked_by: str = COMPUTED  # the tests that check these
    settings: str = ""  # what is printed, where nothing is claimed

    def rows(self, results: Path) -> list[LedgerRow]:
        """Return one row per claim; what has no results yet is not run."""
        if self.settings:
            here, command = "the recipes hold them", "`lipcert list recipes`"
            return [LedgerRow(self.place, self.settings, "", here, None, command=command)]
        recorded = [self._recorded(claim, results) for claim in self.recorded]
        tests = f"`pytest {self.checked_by}`"
        counted = [self._judged(claim, (), NO_TRAINING, tests) for claim in self.untrained]
        return [*self._reproduced(results), *recorded, *counted]

    def _reproduced(self, results: Path) -> list[LedgerRow]:
        if not self.reproduction:
            return []
        reproduction = REPRODUCTIONS.create(self.reproduction)
        claims = (*reproduction.claims, *self.claims)
        if not reproduction.variants:
            command = f"`lipcert reproduce {self.reproduction}`"
            return [self._judged(claim, (), NO_TRAINING, command) for claim in claims]
        names = (self.reproduction,) if self.evidence is None else self.evidence
        return [self._trained(claim, names, results) for claim in claims]

    def _trained(self, claim: Claim, names: Sequence[str], results: Path) -> LedgerRow:
        """Judge a claim by the results of these names, and of those that it compares with."""
        if not names or not all(_exists(name, results) for name in (*names, *claim.also)):
            return self._missing(claim, results)
        found = [Results.read(results / f"{name}.json") for name in (*names, *claim.also)]
        settings = [f"{one.name}: {one.setting}" if len(found) > 1 else one.setting for one in found]
        return self._judged(claim, found, "; ".join(settings), ", ".join(f"`{one.command}`" for one in found))

    def _judged(self, claim: Claim, found: Sequence[Results], setting: str, command: str) -> LedgerRow:
        (one,) = judge([claim], [outcome for each in found for outcome in each.outcomes])
        return self._row(one.claim, one.paper, one.finding, setting, command)

    def _recorded(self, claim: RecordedClaim, results: Path) -> LedgerRow:
        table = RecordedTable.read(results / f"{claim.name}.json")
        if table is None:
            raise ValueError(f"results/{claim.name}.json: expected a recorded table, found rows of trainings")
        script = " ".join(table.command.split()[:3])
        return self._row(
            claim.text, claim.published, claim.check(table), f"{claim.width}: {table.note}", f"`{script} …`"
        )

    def _missing(self, claim: Claim, results: Path) -> LedgerRow:
        found = Verdict(Word.NOT_RUN, f"command ready, not run: {gpu_job(self.reproduction, results)}")
        command = f"`lipcert reproduce {self.reproduction}`"
        if self.evidence is None and "cpu" in REPRODUCTIONS.create(self.reproduction).budgets:
            command += ", reduced with `--budget cpu`"
        return self._row(claim.text, claim.published, found, "", command)

    def _row(self, claim: str, paper: str, finding: Finding, setting: str, command: str) -> LedgerRow:
        return LedgerRow(self.place, claim, paper, finding.found, finding, setting, command, self.heading)


def _exists(name: str, results: Path) -> bool:
    return bool(name) and (results / f"{name}.json").exists()


def gpu_job(reproduction: str, results: Path) -> str:
    """Say how long the paper's budget would take, by the recorded estimate; what is not in it is small."""
    table = RecordedTable.read(results / f"{ESTIMATES}.json")
    hours = {row[0]: float(row[-1]) for row in table.cells} if table is not None else {}
    if reproduction not in hours:
        on_images = "cpu" in REPRODUCTIONS.create(reproduction).budgets
        return "a GPU job, not estimated" if on_images else "minutes of a CPU"
    link = f"[estimate]({anchor(ESTIMATES_HEADING)})"
    return f"a GPU job of about {HOURS.text(hours[reproduction])} hours ({link})"


def ledger_table(rows: Sequence[LedgerRow]) -> Table[LedgerRow]:
    """Lay out all rows, with links to the sections that hold the details."""
    return Table(
        [
            Column("paper", TEXT, lambda row: row.place),
            Column("claim", TEXT, lambda row: row.claim),
            Column("printed", TEXT, lambda row: row.paper),
            Column("here", TEXT, lambda row: row.here),
            Column("verdict", TEXT, _linked),
            Column("run with", TEXT, lambda row: row.setting),
            Column("command", TEXT, lambda row: row.command),
        ],
        rows,
    )


def section_table(rows: Sequence[LedgerRow]) -> Table[LedgerRow]:
    """Lay out the rows of one section."""
    return Table(
        [
            Column("claim of the paper", TEXT, lambda row: row.claim),
            Column("printed", TEXT, lambda row: row.paper),
            Column("here", TEXT, lambda row: row.here),
            Column("verdict", TEXT, lambda row: row.said),
            Column("run with", TEXT, lambda row: row.setting),
        ],
        rows,
    )


def _linked(row: LedgerRow) -> str:
    return f"[{row.said}]({anchor(row.heading)})" if row.heading else row.said


def anchor(heading: str) -> str:
    """Return the link to a heading of the same page.

    Example:
        >>> anchor("Figure 5, left: slack")
        '#figure-5-left-slack'
    """
    return "#" + re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
