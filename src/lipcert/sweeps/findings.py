"""What a sweep found: a row a training, mean and spread over seeds, the best by validation."""

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
from lipcert.report.rows import Row, findings_of
from lipcert.sweeps.grid import Sweep
from lipcert.sweeps.trial import Trial


def rows_of(sweep: Sweep, failures: Mapping[Trial, str] | None = None) -> list[Row]:
    """A row a training: the values of its keys, what was found, or why nothing was."""
    return [
        {**dict(zip(sweep.keys, values, strict=True)), **_found(trial, (failures or {}).get(trial))}
        for trial, values in sweep.trials
    ]


def _found(trial: Trial, complaint: str | None) -> Row:
    row: Row = {"run": str(trial.path), "status": "finished"}
    if complaint is not None or not trial.run.certificate.is_file():
        return {**row, "status": complaint or "not finished"}
    return {**row, **findings_of(trial.run)}


def write_csv(rows: Sequence[Row], path: Path) -> Path:
    """Every row, with every column that one of them has."""
    text = io.StringIO()
    writer = csv.DictWriter(text, titles_of(rows), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, text.getvalue().encode())
    return path


def titles_of(rows: Sequence[Row]) -> list[str]:
    """Keys first, findings then, run and status last."""
    titles = list(dict.fromkeys(key for row in rows for key in row))
    return sorted(titles, key=lambda title: title in ("run", "status"))


def over_seeds(rows: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """One row for all seeds: of every number the mean and the standard deviation."""
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
    """The most certified accuracy on the validation split, at its first radius."""
    title = validation_title(summary)
    if title is None:
        return None
    return max((row for row in summary if title in row), key=lambda row: row[title][0])


def validation_title(summary: Sequence[Row]) -> str | None:
    """The column that chooses."""
    return next((t for row in summary for t in row if t.startswith("val CRA ")), None)


def summary_table(summary: Sequence[Row], best: Row | None) -> Table:
    """For the terminal: accuracies in percent, mean ± standard deviation."""
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
    """As printed."""
    if value is None:
        return "–"
    if isinstance(value, float):  # printed in percent already
        return f"{value:.1f}"
    if not isinstance(value, tuple):
        return str(value)
    mean, spread = value
    percent = "CRA" in title or "clean" in title or title == "tightness"
    scale = 100 if percent else 1
    text = f"{scale * mean:.1f}"
    return text if spread is None else f"{text} ± {scale * spread:.1f}"
