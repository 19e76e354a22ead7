"""results.json of a reproduction: what documents are rendered from. Read and written here alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lipcert.atomic import write_json
from lipcert.data.base import SPLITS, Split
from lipcert.environment import Environment
from lipcert.paper.definition import BUDGETS, REPRODUCTIONS, Claim
from lipcert.paper.outcome import Outcome
from lipcert.paper.verdict import Consistency, Finding, Verdict, Word
from lipcert.runs.measures import cra_at_eps, measures_of
from lipcert.runs.rows import RunRow, SplitRow
from lipcert.tables import Column, Table
from lipcert.tables.kinds import TEXT, Interval, parsed_radius
from lipcert.types import BudgetName


@dataclass(frozen=True)
class Judgement:
    """A claim of the paper, what it prints, and what was found here."""

    claim: str
    paper: str
    finding: Finding

    def to_json(self) -> dict[str, Any]:
        """Return what a file holds: a verdict's word, or whether numbers agree with a definition."""
        found = self.finding
        said = {"agrees": found.agrees} if isinstance(found, Consistency) else {"verdict": found.said}
        return {"claim": self.claim, "paper": self.paper, "here": found.found, **said}

    @classmethod
    def from_json(cls, tree: Mapping[str, Any]) -> Judgement:
        """Read a claim; earlier versions wrote `holds`, null where the seeds left it open."""
        found: Finding
        if "agrees" in tree:
            found = Consistency(tree["agrees"], tree["here"])
        else:
            word = Word(tree["verdict"]) if "verdict" in tree else Word.of(tree["holds"])
            found = Verdict(word, tree["here"])
        return cls(tree["claim"], tree["paper"], found)


def judge(claims: Sequence[Claim], outcomes: Sequence[Outcome]) -> list[Judgement]:
    """Check claims in the rows of finished trainings."""
    return [Judgement(claim.text, claim.published, claim.check(outcomes)) for claim in claims]


def claim_table(claims: Sequence[Judgement]) -> Table[Judgement]:
    """Lay out what the paper says, what was found, and the verdict."""
    return Table(
        [
            Column("claim of the paper", TEXT, lambda one: one.claim),
            Column("paper", TEXT, lambda one: one.paper),
            Column("here", TEXT, lambda one: one.finding.found),
            Column("verdict", TEXT, lambda one: one.finding.said),
        ],
        claims,
    )


@dataclass(frozen=True)
class Results:
    """Hold what a reproduction found; each outcome says on what machine and commit it was made."""

    name: str
    command: str
    epochs: Sequence[int]  # the different lengths of the trainings
    seeds: Sequence[int]
    date: str
    outcomes: Sequence[Outcome]
    claims: Sequence[Judgement] = ()
    failed: Mapping[str, str] = field(default_factory=dict)  # why, by the name of the run
    networks: str = ""  # their size; "" if it was not recorded

    @property
    def budget(self) -> BudgetName:
        """Return the budget that the command names."""
        return next((name for name in BUDGETS if f"--budget {name}" in self.command), "full")

    @property
    def length(self) -> str:
        """Say how long the trainings were."""
        return f"{' or '.join(map(str, self.epochs))} epochs"

    @property
    def setting(self) -> str:
        """Say with what the numbers were found: budget, size, epochs, seeds, and what has changed since."""
        reproduction = REPRODUCTIONS.create(self.name)
        instead = reproduction.at(self.budget).instead
        networks = self.networks or _networks_at(self.name, self.budget)
        parts = [f"{self.budget} budget", *([instead] if instead else []), networks]
        parts += [self.length, seeds_text(self.seeds)]
        older = reproduction.older(self.date)
        return ", ".join(parts) + (f"; older settings: {older}" if older else "")

    def write(self, path: Path) -> Path:
        """Write the file, all or nothing."""
        write_json(path, self.to_json())
        return path

    def to_json(self) -> dict[str, Any]:
        """Return what the file holds."""
        return {
            "name": self.name,
            "command": self.command,
            "epochs": self.epochs[0] if len(self.epochs) == 1 else list(self.epochs),
            "seeds": list(self.seeds),
            "date": self.date,
            "rows": [_row_to_json(outcome) for outcome in self.outcomes],
            "claims": [claim.to_json() for claim in self.claims],
            "failed": dict(self.failed),
            "networks": self.networks,
        }

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read a file; those of earlier versions have no claims, failures, places or size."""
        found = json.loads(path.read_text(encoding="utf-8"))
        epochs = found["epochs"]
        return cls(
            found["name"],
            found["command"],
            (epochs,) if isinstance(epochs, int) else tuple(epochs),  # one length is written bare
            tuple(found["seeds"]),
            found["date"],
            tuple(map(_outcome, found["rows"])),
            tuple(map(Judgement.from_json, found.get("claims", ()))),
            found.get("failed", {}),
            found.get("networks") or _size(found.get("width")),
        )


@cache  # takes long, as all recipes are read, and pages ask for every claim
def _networks_at(name: str, budget: BudgetName) -> str:
    return REPRODUCTIONS.create(name).networks(budget)


def _size(width: float | None) -> str:
    """Return the size as it is written now; some earlier files have the width alone."""
    return "" if width is None else f"width {width:g}"


def seeds_text(seeds: Sequence[int]) -> str:
    """Name the seeds.

    Example:
        >>> seeds_text([1]), seeds_text([1, 2]), seeds_text([1, 2, 3])
        ('seed 1', 'seeds 1 and 2', 'seeds 1 to 3')
    """
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    is_run = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    if is_run:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seeds {', '.join(map(str, seeds[:-1]))} and {seeds[-1]}"


def _row_to_json(outcome: Outcome) -> dict[str, Any]:
    run = outcome.run
    splits: dict[str, dict[str, Any]] = {
        name: {
            "samples": split.samples,
            "clean": split.clean,
            "cra": split.cra,
            "interval": [split.interval.low, split.interval.high],
        }
        for name, split in run.splits.items()
    }
    measured = {m.title: m.number(run) for m in measures_of([run])}
    at_eps = {m.title: m.number(run) for m in map(cra_at_eps, run.splits)}
    return {
        "recipe": run.recipe,
        "seed": run.seed,
        "loss": run.loss,
        "eps": run.eps,
        "slack": run.slack,
        "loss_eps": run.loss_eps,
        "k_f": run.k_f,
        "k_hf": run.k_hf,
        "seconds": run.seconds,
        "environment": run.environment.model_dump(),
        **splits,
        **measured,
        "tightness": run.tightness,
        "x": outcome.x,
        "series": outcome.series,
        **{title: value for title, value in at_eps.items() if value is not None},
        "status": "finished",
        "K_f in training": outcome.k_f_in_training,
        "CRA by epoch": list(outcome.cra_by_epoch),
    }


def _outcome(row: dict[str, Any]) -> Outcome:
    run = RunRow(
        recipe=row["recipe"],
        seed=row["seed"],
        loss=row["loss"],
        slack=row["slack"],
        loss_eps=row.get("loss_eps"),
        k_f=row["k_f"],
        k_hf=row["k_hf"],
        tightness=row.get("tightness"),
        seconds=row["seconds"],
        environment=Environment.model_validate(row["environment"]),
        splits={name: _split(row, name) for name in SPLITS if name in row},
    )
    by_epoch = tuple(row.get("CRA by epoch", ()))
    return Outcome(run, row.get("series", ""), row.get("x"), row.get("K_f in training"), by_epoch)


def _split(row: dict[str, Any], name: Split) -> SplitRow:
    found = row[name]
    start = f"{name} CRA "
    radii = {key.removeprefix(start): value for key, value in row.items() if key.startswith(start)}
    certified = {parsed_radius(text): value for text, value in radii.items() if text != "at ε"}
    first = {row["eps"]: found["cra"]}  # earlier versions wrote this one alone
    others = {radius: value for radius, value in certified.items() if abs(radius - row["eps"]) > 1e-9}
    return SplitRow(found["samples"], found["clean"], {**first, **others}, Interval(*found["interval"]))
