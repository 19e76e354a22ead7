"""The findings of a sweep: one row per training, mean and spread over seeds, the best by validation."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from lipcert.atomic import write_atomically
from lipcert.errors import InputError
from lipcert.runs import Run
from lipcert.runs.rows import Row, findings_of
from lipcert.sweeps.combinations import Sweep
from lipcert.sweeps.trial import Trial

# The table with one row per training, in the directory of the sweep.
TABLE = "sweep.csv"


def rows_of(sweep: Sweep, failures: Mapping[Path, str] | None = None) -> list[Row]:
    """Return one row per training: the values of its keys and its results, or why it failed (`failures`)."""
    why = failures or {}
    begun = [(values, _found(trial, why.get(trial.path))) for trial, values in sweep.trials]
    unbegun = [
        (values, {"run": str(path), "status": why.get(path, "not begun")}) for path, values in sweep.unbegun
    ]
    return [{**dict(zip(sweep.keys, values, strict=True)), **found} for values, found in [*begun, *unbegun]]


def _found(trial: Trial, complaint: str | None) -> Row:
    row: Row = {"run": str(trial.path), "status": "finished"}
    if complaint is not None or not trial.run.certificate.is_file():
        return {**row, "status": complaint or _progress(trial)}
    return {**row, **findings_of(trial.run)}


def _progress(trial: Trial) -> str:
    last = trial.run.last_metrics()
    done = 0 if last is None else last.epoch
    return f"not finished, {done} of {trial.recipe.train.epochs} epochs"


def noted_failures(sweep: Sweep) -> dict[Path, str]:
    """Return why trainings without a certificate failed, from the table of the sweep."""
    path = sweep.output / TABLE
    if not path.is_file():
        return {}
    try:
        with path.open(newline="") as file:
            said = {Path(row["run"]).name: row["status"] for row in csv.DictReader(file)}
    except (KeyError, TypeError, UnicodeDecodeError, csv.Error):
        raise InputError(f"{path}: cannot be read as the table of a sweep") from None
    runs = [*(trial.path for trial, _ in sweep.trials), *(run for run, _ in sweep.unbegun)]
    missing = [run for run in runs if not Run(run).certificate.is_file()]
    return {run: said[run.name] for run in missing if said.get(run.name, "finished") != "finished"}


def write_csv(rows: Sequence[Row], path: Path) -> Path:
    """Write every row, with every column that one of them has."""
    text = io.StringIO()
    writer = csv.DictWriter(text, titles_of(rows), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, text.getvalue().encode())
    return path


def titles_of(rows: Sequence[Row]) -> list[str]:
    """Return the titles: keys first, then findings, run and status last."""
    titles = list(dict.fromkeys(key for row in rows for key in row))
    return sorted(titles, key=lambda title: title in ("run", "status"))


def over_seeds(rows: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """Return one row for all seeds, with mean and standard deviation of every number."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    shown = [key for key in keys if key != "seed"]
    for row in rows:
        if row["status"] == "finished":
            groups.setdefault(tuple(str(row[key]) for key in shown), []).append(row)
    return [_summary(dict(zip(shown, values, strict=True)), group) for values, group in groups.items()]


def _summary(row: Row, group: Sequence[Row]) -> Row:
    row["trainings"] = len(group)
    for title in [title for title in titles_of(group) if title not in row]:
        values = [one[title] for one in group if isinstance(one.get(title), float)]
        if values:
            spread = statistics.stdev(values) if len(values) > 1 else None
            row[title] = (statistics.mean(values), spread)
    return row


def best_of(summary: Sequence[Row]) -> Row | None:
    """Return the row with the largest certified accuracy on the validation split, at its first radius."""
    title = validation_title(summary)
    if title is None:
        return None
    return max((row for row in summary if title in row), key=lambda row: row[title][0])


def validation_title(summary: Sequence[Row]) -> str | None:
    """Return the column that decides."""
    return next((t for row in summary for t in row if t.startswith("val CRA ")), None)


def summary_table(summary: Sequence[Row], best: Row | None) -> Table:
    """Return a table for the terminal: accuracies in percent, mean ± standard deviation."""
    titles = [t for t in dict.fromkeys(t for row in summary for t in row) if t != "seconds"]
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in titles:
        table.add_column(title.replace(" ", "\n"), justify="right", no_wrap=True)
    for row in summary:
        cells = [cell(title, row.get(title)) for title in titles]
        table.add_row(*cells, style="bold" if row is best else None)
    if best is not None:
        table.caption = (
            f"accuracies in %, mean ± standard deviation; bold: the most {validation_title(summary)}"
        )
    return table


def cell(title: str, value: Any) -> str:
    """Format a value for printing."""
    if value is None:
        return "–"
    if isinstance(value, float):  # already in percent
        return f"{value:.1f}"
    if not isinstance(value, tuple):
        return str(value)
    mean, spread = value
    percent = "CRA" in title or "clean" in title or title == "tightness"
    scale = 100 if percent else 1
    if spread is None:
        return f"{scale * mean:.1f}"
    digits = 2 if percent and 0 < scale * spread < 0.05 else 1  # otherwise it would read ± 0.0
    return f"{scale * mean:.{digits}f} ± {scale * spread:.{digits}f}"
