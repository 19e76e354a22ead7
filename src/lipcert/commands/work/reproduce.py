"""Run a reproduction: train what is missing, draw, check the claims, write results.json."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.table import Table

from lipcert.atomic import write_json
from lipcert.errors import InputError, LipcertError
from lipcert.paper import REPRODUCTIONS
from lipcert.paper.definition import VERDICTS, Reproduction, Trained, Variant
from lipcert.recipes.axes import parse_values
from lipcert.report.table import rich_table
from lipcert.runs.rows import Row, findings_of, row_of
from lipcert.sweeps import Crew, Trial, run_trials
from lipcert.sweeps.running import failure_line


@dataclass(frozen=True)
class Report:
    """The tables and files of a reproduction; failures as one line, empty if there are none."""

    tables: list[Table]
    written: list[Path]
    failures: str = ""


def carry_out(
    name: str,
    output: Path,
    *,
    crew: Crew,
    budget: str | None = None,
    seeds: Sequence[int] | None = None,
    settings: Sequence[str] = (),
    overwrite: bool = False,
) -> Report:
    """Run a reproduction; finished trainings are kept, failed ones are left out of tables and figures."""
    if name not in REPRODUCTIONS:
        raise InputError(f"unknown reproduction {name!r}; known: {', '.join(REPRODUCTIONS)}")
    reproduction = REPRODUCTIONS[name]
    trials = reproduction.trials(output, budget, seeds, settings)
    _make_writable(output)
    failures = run_trials([trial for _, trial in trials], crew, overwrite)
    finished = [(variant, trial) for variant, trial in trials if trial not in failures]
    if not finished:
        raise LipcertError(failure_line(failures, len(trials)))
    trained = Trained(finished, [_row(variant, trial) for variant, trial in finished])
    # A claim is about all of the trainings; those of the smoke budget show nothing.
    verdicts = [] if failures or budget == "smoke" else _verdicts(reproduction, trained.rows)
    results = output / "results.json"
    write_json(results, _results(reproduction, budget, settings, trained, verdicts, failures))
    written = reproduction.draw(trained, output / name)
    shown = [rich_table(trained.rows)]
    shown += [_verdict_table(verdicts)] if verdicts else []
    return Report(shown, [*written, results], failure_line(failures, len(trials)))


def _row(variant: Variant, trial: Trial) -> Row:
    """Return all numbers of a run, and its place in the figure."""
    row = {**row_of(trial.run), **findings_of(trial.run), "x": variant.x, "series": variant.series}
    if row["loss_eps"] is not None and math.isclose(row["eps"], row["loss_eps"]):
        row |= {f"{split} CRA at ε": row[split]["cra"] for split in trial.recipe.certify.splits}
    metrics = trial.run.metrics()
    by_epoch = [m.validation.val_cra_estimate for m in metrics if m.validation is not None]
    return {**row, "status": "finished", "K_f in training": metrics[-1].k_f, "CRA by epoch": by_epoch}


def _verdicts(reproduction: Reproduction, rows: Sequence[Row]) -> list[dict[str, Any]]:
    verdicts = [(claim, claim.check(rows)) for claim in reproduction.claims]
    return [
        {"claim": claim.text, "paper": claim.published, "here": verdict.found, "holds": verdict.holds}
        for claim, verdict in verdicts
    ]


def _verdict_table(verdicts: Sequence[dict[str, Any]]) -> Table:
    table = Table("claim of the paper", "paper", "here", "holds", title="claims")
    for verdict in verdicts:
        table.add_row(verdict["claim"], verdict["paper"], verdict["here"], VERDICTS[verdict["holds"]])
    return table


def _results(
    reproduction: Reproduction,
    budget: str | None,
    settings: Sequence[str],
    trained: Trained,
    verdicts: list[dict[str, Any]],
    failures: Mapping[Trial, str],
) -> dict[str, Any]:
    """Return the data of documents; each row names its machine and commit."""
    seeds = sorted({trial.recipe.seed for trial in (*(t for _, t in trained.trials), *failures)})
    options = [f"--budget {budget}"] if budget else []
    if seeds != reproduction.seeds(budget):
        options.append(f"--seeds {','.join(map(str, seeds))}")
    options += [f"--set {shlex.quote(setting)}" for setting in settings]
    return {
        "name": reproduction.name,
        "command": " ".join(["lipcert reproduce", reproduction.name, *options]),
        "epochs": max(trial.recipe.train.epochs for _, trial in trained.trials),
        "seeds": seeds,
        "date": datetime.now(UTC).date().isoformat(),
        "rows": list(trained.rows),
        "claims": verdicts,
        "failed": {trial.path.name: complaint for trial, complaint in failures.items()},
    }


def _make_writable(output: Path) -> None:
    try:
        output.mkdir(parents=True, exist_ok=True)
        probe = output / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(f"{output}: cannot be written ({error.strerror})") from None


def parse_seeds(text: str) -> list[int]:
    """Parse seeds such as 1, 1..3 or 1,5,7.

    Example:
        >>> parse_seeds("1..3,7")
        [1, 2, 3, 7]
    """
    try:
        seeds = [int(value) for value in parse_values(text)]
    except ValueError:
        raise InputError(f"--seeds: expected something like 1, 1..3 or 1,5,7, got {text!r}") from None
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise InputError(f"--seeds: expected different numbers >= 0, got {text!r}")
    return seeds
