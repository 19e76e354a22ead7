"""Diagrams as plain data: the page draws them with Plotly, figures.py with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lipcert.report.sources import Finished
from lipcert.runs.rows import Row, fraction

# Points of an accuracy-radius curve: enough for any screen and print.
_POINTS = 400


@dataclass(frozen=True)
class Line:
    """Points of one colour; `spread` is the standard deviation over the seeds at each point."""

    name: str
    x: list[float]
    y: list[float]
    spread: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Chart:
    """One diagram."""

    name: str  # of its files
    title: str
    across: str
    up: str
    lines: list[Line]
    log_x: bool = False
    log_y: bool = False
    marks: list[tuple[float, str]] = field(default_factory=list)  # vertical lines


def radius_chart(runs: Sequence[Finished]) -> Chart:
    """Chart the share of correct and certified samples at every radius."""
    radii = sorted({radius for run in runs for radius in run.recipe.certify.radii})
    robust = {run.name: run.robust.sort().values.numpy() for run in runs}
    finite = [found[np.isfinite(found)] for found in robust.values()]  # constant ones have infinite radii
    farthest = max([1.2 * max(radii), *(np.quantile(found, 0.995) for found in finite if len(found))])
    shown = np.linspace(0.0, float(farthest), _POINTS)
    lines = []
    for name, found in robust.items():
        left = len(found) - np.searchsorted(found, shown, side="right")
        lines.append(Line(name, shown.tolist(), (100 * left / len(found)).round(3).tolist()))
    marks = [(radius, fraction(radius)) for radius in radii if radius <= farthest]
    return Chart(
        "radius", "Certified accuracy against radius", "L2 radius", "certified [%]", lines, marks=marks
    )


# Columns of metrics.jsonl: key, file name, title, axis title, factor, logarithmic.
_CURVES = (
    ("loss", "loss", "Loss", "training loss", 1.0, False),
    ("val_accuracy", "clean", "Clean accuracy in training", "validation [%]", 100.0, False),
    ("val_cra_estimate", "cra", "Certified accuracy in training", "validation, estimated [%]", 100.0, False),
    ("k_f", "constant", "Lipschitz constant in training", "K_f, estimated", 1.0, True),
)


def training_charts(runs: Sequence[Finished]) -> list[Chart]:
    """Chart the metrics epoch by epoch."""
    metrics = {run.name: [m.numbers for m in run.run.metrics()] for run in runs}
    charts = []
    for key, file, title, up, factor, log in _CURVES:
        lines = [
            Line(name, [m["epoch"] for m in found if key in m], [factor * m[key] for m in found if key in m])
            for name, found in metrics.items()
        ]
        lines = [line for line in lines if line.x]
        if lines:
            charts.append(Chart(f"training-{file}", title, "epoch", up, lines, log_y=log))
    return charts


def sweep_charts(name: str, keys: Sequence[str], summary: Sequence[Row]) -> list[Chart]:
    """Chart accuracies and constants against every key that is a number and takes several values."""
    return [
        chart
        for key in keys
        if key != "seed"
        and len({row[key] for row in summary}) > 1
        and all(_is_number(row[key]) for row in summary)
        for chart in _along(name, key, summary, [k for k in keys if k not in (key, "seed")])
    ]


def _along(name: str, key: str, summary: Sequence[Row], others: Sequence[str]) -> list[Chart]:
    titles = dict.fromkeys(t for row in summary for t in row)
    shown = [t for t in titles if t.startswith(("test ", "val ")) or t in ("K_f", "K_hf", "tightness")]
    last = "test " if any(t.startswith("test ") for t in shown) else "val "
    accuracies = [t for t in shown if t.startswith(last)]
    values = [float(row[key]) for row in summary]
    log = min(values) > 0 and max(values) / min(values) > 50
    slug = f"{name}-{key.replace('.', '-')}"
    charts = [
        Chart(
            f"{slug}-accuracy",
            f"Accuracy against {key}",
            key,
            "accuracy [%]",
            _lines(key, summary, others, accuracies, 100.0),
            log_x=log,
        ),
        Chart(
            f"{slug}-constant",
            f"Lipschitz constants against {key}",
            key,
            "constant",
            _lines(key, summary, others, ["K_f", "K_hf"], 1.0),
            log_x=log,
            log_y=True,
        ),
    ]
    if any(row.get("tightness") for row in summary):
        lines = _lines(key, summary, others, ["tightness"], 100.0)
        charts.append(
            Chart(f"{slug}-tightness", f"Tightness against {key}", key, "tightness [%]", lines, log_x=log)
        )
    return charts


def _lines(
    key: str, summary: Sequence[Row], others: Sequence[str], columns: Sequence[str], factor: float
) -> list[Line]:
    groups: dict[str, list[Row]] = {}
    for row in summary:
        groups.setdefault(", ".join(f"{other}={row[other]}" for other in others), []).append(row)
    lines = []
    for group, rows in groups.items():
        rows = sorted(rows, key=lambda row: float(row[key]))
        for column in columns:
            points = [(float(row[key]), *row[column]) for row in rows if column in row]
            name = " ".join(filter(None, (column, group)))
            spread = [factor * (p[2] or 0.0) for p in points]
            lines.append(Line(name, [p[0] for p in points], [factor * p[1] for p in points], spread))
    return lines


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True
