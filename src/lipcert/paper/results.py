"""results.json of a reproduction: what documents are rendered from. Read and written here alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lipcert.atomic import write_json
from lipcert.certificates.statement import Environment
from lipcert.data.base import Split
from lipcert.paper.outcome import Outcome
from lipcert.runs.measures import cra_at_eps, measures_of
from lipcert.runs.rows import RunRow, SplitRow
from lipcert.tables import Column, Table
from lipcert.tables.kinds import TEXT, Interval, parsed_radius

_SPLITS: tuple[Split, ...] = ("train", "val", "test")


@dataclass(frozen=True)
class Judgement:
    """A claim of the paper, what was found here, and whether it holds; None where the seeds leave it open."""

    claim: str
    paper: str
    here: str
    holds: bool | None


# As printed, by `Judgement.holds`.
VERDICTS = {True: "yes", False: "no", None: "open: within the spread of the seeds"}


def claim_table(claims: Sequence[Judgement]) -> Table[Judgement]:
    """Lay out what the paper says, what was found, and whether it holds."""
    return Table(
        [
            Column("claim of the paper", TEXT, lambda one: one.claim),
            Column("paper", TEXT, lambda one: one.paper),
            Column("here", TEXT, lambda one: one.here),
            Column("holds", TEXT, lambda one: VERDICTS[one.holds]),
        ],
        claims,
    )


@dataclass(frozen=True)
class Results:
    """Hold what a reproduction found; each outcome says on what machine and commit it was made."""

    name: str
    command: str
    epochs: int
    seeds: Sequence[int]
    date: str
    outcomes: Sequence[Outcome]
    claims: Sequence[Judgement] = ()
    failed: Mapping[str, str] = field(default_factory=dict)  # why, by the name of the run

    def write(self, path: Path) -> Path:
        """Write the file, all or nothing."""
        write_json(path, self.to_json())
        return path

    def to_json(self) -> dict[str, Any]:
        """Return what the file holds."""
        return {
            "name": self.name,
            "command": self.command,
            "epochs": self.epochs,
            "seeds": list(self.seeds),
            "date": self.date,
            "rows": [_row_to_json(outcome) for outcome in self.outcomes],
            "claims": [asdict(claim) for claim in self.claims],
            "failed": dict(self.failed),
        }

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read a file; those of earlier versions have no claims, failures or places."""
        found = json.loads(path.read_text())
        return cls(
            found["name"],
            found["command"],
            found["epochs"],
            tuple(found["seeds"]),
            found["date"],
            tuple(map(_outcome, found["rows"])),
            tuple(Judgement(**claim) for claim in found.get("claims", ())),
            found.get("failed", {}),
        )


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
        splits={name: _split(row, name) for name in _SPLITS if name in row},
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
