"""Run a reproduction: train what is missing, draw, check the claims, write results.json."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lipcert.atomic import check_folder_place
from lipcert.errors import InputError, LipcertError
from lipcert.paper import REPRODUCTIONS
from lipcert.paper.definition import Reproduction, Trained, networks_of
from lipcert.paper.outcome import outcome_of
from lipcert.paper.results import Judgement, Results, claim_table, judge
from lipcert.recipes.axes import parse_values
from lipcert.recipes.budgets import remark
from lipcert.report.figure import labelled
from lipcert.report.run_table import run_table
from lipcert.sweeps import Crew, Trial, run_trials
from lipcert.sweeps.running import failure_line
from lipcert.tables import Table
from lipcert.types import BudgetName


@dataclass(frozen=True)
class Report:
    """The tables and files of a reproduction; failures as one line, empty if there are none."""

    tables: list[Table[Any]]
    written: list[Path]
    failures: str = ""


def carry_out(
    name: str,
    output: Path,
    *,
    crew: Crew,
    budget: BudgetName | None = None,
    seeds: Sequence[int] | None = None,
    settings: Sequence[str] = (),
    overwrite: bool = False,
) -> Report:
    """Train, draw and check; finished trainings are kept, failed ones left out of tables and figures."""
    reproduction = REPRODUCTIONS.create(name)
    trials = reproduction.trials(output, budget, seeds, settings)
    check_folder_place(output)
    output.mkdir(parents=True, exist_ok=True)
    if not trials:
        return Report([], reproduction.draw(Trained((), ()), output / name))
    failures = run_trials([trial for _, trial in trials], crew, overwrite)
    finished = [(variant, trial) for variant, trial in trials if trial not in failures]
    if not finished:
        raise LipcertError(failure_line(failures, len(trials)))
    trained = Trained(finished, [outcome_of(variant, trial) for variant, trial in finished])
    # A claim is about all of the trainings; those of the smoke budget tell nothing.
    claims = [] if failures or budget == "smoke" else judge(reproduction.claims, trained.outcomes)
    found = _results(reproduction, budget, settings, trained, claims, failures)
    results = found.write(output / "results.json")
    with labelled(remark(budget)):
        written = reproduction.draw(trained, output / name)
    shown: list[Table[Any]] = [run_table([outcome.run for outcome in trained.outcomes], budget)]
    shown += [replace(claim_table(claims), title="claims")] if claims else []
    return Report(shown, [*written, results], failure_line(failures, len(trials)))


def _results(
    reproduction: Reproduction,
    budget: BudgetName | None,
    settings: Sequence[str],
    trained: Trained,
    claims: Sequence[Judgement],
    failures: Mapping[Trial, str],
) -> Results:
    """Put together what was found, and the command that finds it again."""
    seeds = sorted({trial.recipe.seed for trial in (*(t for _, t in trained.trials), *failures)})
    options = [f"--budget {budget}"] if budget else []
    if seeds != reproduction.seeds(budget):
        options.append(f"--seeds {','.join(map(str, seeds))}")
    options += [f"--set {shlex.quote(setting)}" for setting in settings]
    return Results(
        name=reproduction.name,
        command=" ".join(["lipcert reproduce", reproduction.name, *options]),
        epochs=sorted({trial.recipe.train.epochs for _, trial in trained.trials}),
        seeds=seeds,
        date=datetime.now(UTC).date().isoformat(),
        outcomes=trained.outcomes,
        claims=claims,
        failed={trial.path.name: complaint for trial, complaint in failures.items()},
        networks=networks_of(trained.trials),
    )


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
