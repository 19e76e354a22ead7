"""The findings of a sweep: a row per training, or why there is none yet."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lipcert.atomic import write_atomically
from lipcert.errors import InputError
from lipcert.runs import Run
from lipcert.runs.measures import measures_of
from lipcert.runs.rows import RunRow, row_of
from lipcert.sweeps.combinations import Sweep
from lipcert.sweeps.trial import Trial
from lipcert.tables import Column, Table
from lipcert.tables.kinds import SETTING, TEXT
from lipcert.tables.table_files import csv_text

# A row per training, in the directory of the sweep.
TABLE = "sweep.csv"

_FINISHED = "finished"


@dataclass(frozen=True)
class SweepRow:
    """One training: the values of its keys and what was found, or why nothing was."""

    values: Mapping[str, str]  # by key
    path: Path
    found: RunRow | None = None
    complaint: str = ""

    @property
    def status(self) -> str:
        """Say whether it is finished, or why not."""
        return self.complaint or _FINISHED


def rows_of(sweep: Sweep, failures: Mapping[Path, str] | None = None) -> list[SweepRow]:
    """Return a row per training; `failures` says by run why nothing was found."""
    why = failures or {}
    begun = [_row(sweep, trial, values, why.get(trial.path)) for trial, values in sweep.trials]
    unbegun = [
        SweepRow(_by_key(sweep, values), path, complaint=why.get(path, "not begun"))
        for path, values in sweep.unbegun
    ]
    return [*begun, *unbegun]


def _row(sweep: Sweep, trial: Trial, values: Sequence[str], complaint: str | None) -> SweepRow:
    chosen = _by_key(sweep, values)
    if complaint is not None or not trial.run.certificate.is_file():
        return SweepRow(chosen, trial.path, complaint=complaint or _progress(trial))
    return SweepRow(chosen, trial.path, row_of(trial.run))


def _by_key(sweep: Sweep, values: Sequence[str]) -> dict[str, str]:
    return dict(zip(sweep.keys, values, strict=True))


def _progress(trial: Trial) -> str:
    last = trial.run.last_metrics()
    done = 0 if last is None else last.epoch
    return f"not finished, {done} of {trial.recipe.train.epochs} epochs"


def noted_failures(sweep: Sweep) -> dict[Path, str]:
    """Return why trainings without a certificate failed, as the table of the sweep has it."""
    path = sweep.output / TABLE
    if not path.is_file():
        return {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            said = {Path(row["run"]).name: row["status"] for row in csv.DictReader(file)}
    except (KeyError, TypeError, UnicodeDecodeError, csv.Error):
        raise InputError(f"{path}: cannot be read as the table of a sweep") from None
    runs = [*(trial.path for trial, _ in sweep.trials), *(run for run, _ in sweep.unbegun)]
    missing = [run for run in runs if not Run(run).certificate.is_file()]
    return {run: said[run.name] for run in missing if said.get(run.name, _FINISHED) != _FINISHED}


def write_rows(rows: Sequence[SweepRow], path: Path) -> Path:
    """Write every row with all digits: keys first, findings then, run and status last."""
    measures = measures_of([row.found for row in rows if row.found is not None])
    columns = [
        *(_key_column(key) for key in dict.fromkeys(key for row in rows for key in row.values)),
        *(measure.column(_found) for measure in measures),
        Column("run", TEXT, lambda row: str(row.path)),
        Column("status", TEXT, lambda row: row.status),
    ]
    write_atomically(path, csv_text(Table(columns, rows), as_printed=False).encode())
    return path


def _found(row: SweepRow) -> RunRow | None:
    return row.found


def _key_column(key: str) -> Column[SweepRow]:
    return Column(key, SETTING, lambda row: row.values.get(key))
