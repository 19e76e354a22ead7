"""`lipcert sweep`: lay out, run and summarise."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lipcert.atomic import check_folder_place
from lipcert.errors import InputError
from lipcert.recipes.budgets import with_remark
from lipcert.sweeps.combinations import check_place, lay_out, overruled
from lipcert.sweeps.crew import Crew, LocalCrew
from lipcert.sweeps.findings import TABLE, rows_of, write_rows
from lipcert.sweeps.running import failure_line, run_trials
from lipcert.sweeps.summary import Combination, best_of, over_seeds, summary_table
from lipcert.sweeps.trial import check_trials
from lipcert.tables import Table

# Who trains: processes of this machine, or a Ray cluster.
Backend = Literal["local", "ray"]


@dataclass(frozen=True)
class Found:
    """The lines to print; failures as one line, empty if there are none."""

    table: Table[Combination]
    lines: list[str]
    failures: str


def carry_out(
    recipe: str,
    over: Sequence[str],
    budget: str | None,
    settings: Sequence[str],
    output: Path | None,
    backend: Backend,
    address: str | None,
    jobs: int | None,
    overwrite: bool,
) -> Found:
    """Run what is missing of the grid, and summarise all of it."""
    sweep = lay_out(recipe, budget, settings, over, output)
    trials = [trial for trial, _ in sweep.trials]
    if not overwrite:
        check_place(sweep)
    check_folder_place(sweep.output)
    check_trials(trials, overwrite)
    crew = crew_of(backend, address, jobs)
    _warn(overruled(sweep))
    sweep.write(shlex.join(["lipcert", *sys.argv[1:]]))
    if overwrite:
        (sweep.output / TABLE).unlink(missing_ok=True)  # its rows on earlier trainings no longer hold
    failures = run_trials(trials, crew, overwrite)
    rows = rows_of(sweep, {trial.path: complaint for trial, complaint in failures.items()})
    table = write_rows(rows, sweep.output / TABLE)
    summary = over_seeds(rows)
    best = best_of(summary)
    lines = [
        f"wrote {table}",
        f"next: {shlex.join(['lipcert', 'report', str(sweep.output), '-o', 'report.html'])}",
    ]
    if best is not None:
        chosen = [f"{key}={value}" for key, value in best.values.items()]
        lines.insert(0, f"best by validation: {', '.join(chosen) or sweep.recipe}")
    table_shown = summary_table(summary)
    noted = replace(table_shown, note=with_remark(table_shown.note, budget))
    return Found(noted, lines, failure_line(failures, len(trials)))


def _warn(ends: Mapping[str, float]) -> None:
    """Warn once per key whose schedule ends at the same value for all of its values."""
    for key, end in ends.items():
        print(
            f"lipcert: warning: --over {key}: the recipe's schedule takes it to {end:g} wherever it starts; "
            f"--set schedule.{key}=null keeps each value",
            file=sys.stderr,
        )


def crew_of(backend: Backend, address: str | None, jobs: int | None) -> Crew:
    """Choose who does the work."""
    if backend == "ray":
        from lipcert.sweeps.ray_crew import RayCrew

        return RayCrew(jobs, address)
    if address is not None:
        raise InputError("--address: is for --backend ray")
    return LocalCrew(jobs)
