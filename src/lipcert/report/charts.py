"""Diagrams as plain data: the page draws them with Plotly, chart_files.py with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lipcert.data.base import shown_split
from lipcert.report.method_names import method_of
from lipcert.report.palette import Look, run_looks, series_look
from lipcert.report.report_inputs import Finished
from lipcert.runs.measures import K_F, K_HF, TIGHTNESS, Measure, clean, cra
from lipcert.sweeps.summary import Combination
from lipcert.tables.grouping import grouped
from lipcert.tables.kinds import printed_radius

# Points of an accuracy-radius curve: enough for any screen and print.
_POINTS = 400


@dataclass(frozen=True)
class Line:
    """Points of one colour; `spread` is the standard deviation over the seeds at each point."""

    name: str
    x: list[float]
    y: list[float]
    look: Look
    spread: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Chart:
    """One diagram."""

    name: str  # names its files
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
    robust = {run.name: run.samples.robust.sort().values.numpy() for run in runs}
    finite = [found[np.isfinite(found)] for found in robust.values()]  # constant ones have infinite radii
    farthest = max([1.2 * max(radii), *(np.quantile(found, 0.995) for found in finite if len(found))])
    shown = np.linspace(0.0, float(farthest), _POINTS)
    lines = []
    for (name, found), look in zip(robust.items(), _looks(runs), strict=True):
        left = len(found) - np.searchsorted(found, shown, side="right")
        lines.append(Line(name, shown.tolist(), (100 * left / len(found)).round(3).tolist(), look))
    marks = [(radius, printed_radius(radius)) for radius in radii if radius <= farthest]
    return Chart(
        "radius", "Certified accuracy against radius", "L2 radius", "certified [%]", lines, marks=marks
    )


def _looks(runs: Sequence[Finished]) -> list[Look]:
    return run_looks([method_of(run.recipe) for run in runs])


# What is drawn from metrics.jsonl: key, file name, title, axis title, factor, logarithmic.
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
            Line(
                name,
                [m["epoch"] for m in found if key in m],
                [factor * m[key] for m in found if key in m],
                look,
            )
            for (name, found), look in zip(metrics.items(), _looks(runs), strict=True)
        ]
        lines = [line for line in lines if line.x]
        if lines:
            charts.append(Chart(f"training-{file}", title, "epoch", up, lines, log_y=log))
    return charts


def sweep_charts(name: str, summary: Sequence[Combination]) -> list[Chart]:
    """Chart accuracies and constants against every key that is a number and takes several values."""
    keys = dict.fromkeys(key for combination in summary for key in combination.values)
    return [chart for key in keys if _is_axis(key, summary) for chart in _along(name, key, summary)]


def _is_axis(key: str, summary: Sequence[Combination]) -> bool:
    values = {combination.values[key] for combination in summary}
    return len(values) > 1 and all(map(_is_number, values))


def _along(name: str, key: str, summary: Sequence[Combination]) -> list[Chart]:
    values = [float(combination.values[key]) for combination in summary]
    log = min(values) > 0 and max(values) / min(values) > 50
    slug = f"{name}-{key.replace('.', '-')}"
    return [
        Chart(
            f"{slug}-{part}",
            f"{title} against {key}",
            key,
            unit,
            _lines(key, summary, measures),
            log_x=log,
            log_y=part == "constant",
        )
        for part, title, unit, measures in _parts(summary)
    ]


def _parts(summary: Sequence[Combination]) -> list[tuple[str, str, str, list[Measure]]]:
    """List what is drawn together: the accuracies of the last split, the constants, the tightness."""
    runs = [run for combination in summary for run in combination.runs]
    split = shown_split(name for run in runs for name in run.splits)
    radii = dict.fromkeys(r for run in runs if split in run.splits for r in run.splits[split].certified)
    accuracies = [clean(split), *(cra(split, radius) for radius in radii)]
    parts = [
        ("accuracy", "Accuracy", "accuracy [%]", accuracies),
        ("constant", "Lipschitz constants", "constant", [K_F, K_HF]),
    ]
    if TIGHTNESS.numbers(runs):
        parts.append(("tightness", "Tightness", "tightness [%]", [TIGHTNESS]))
    return parts


def _lines(key: str, summary: Sequence[Combination], measures: Sequence[Measure]) -> list[Line]:
    def others(combination: Combination) -> str:
        return ", ".join(f"{other}={value}" for other, value in combination.values.items() if other != key)

    lines: list[Line] = []
    for group, members in grouped(summary, others).items():
        ordered = sorted(members, key=lambda combination: float(combination.values[key]))
        for measure in measures:
            found = [(float(c.values[key]), measure.deviation(c.runs)) for c in ordered]
            points = [(x, value) for x, value in found if value is not None]
            scale = measure.kind.scale
            lines.append(
                Line(
                    " ".join(filter(None, (measure.title, group))),
                    [x for x, _ in points],
                    [scale * value.mean for _, value in points],
                    series_look(len(lines)),
                    [scale * (value.deviation or 0.0) for _, value in points],
                )
            )
    return lines


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
