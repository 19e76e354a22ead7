"""Draw numbers of many trainings along an axis: means with the spread over the seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.ticker import LogLocator, NullFormatter

from lipcert.report.figure import COLOURS, new_grid, save_figure
from lipcert.runs.rows import Row

_MARKS = ("o", "s", "^", "D", "v")


@dataclass(frozen=True)
class Panel:
    """One diagram: columns of the rows against x, one line per column of each series."""

    title: str
    columns: tuple[str, ...]
    percent: bool = False
    log: bool = False
    # Points of the paper or of a formula, by the name of the line.
    beside: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Axis:
    """The number in which the trainings differ."""

    title: str
    log: bool = False


def curves(rows: Sequence[Row], axis: Axis, panels: Sequence[Panel], note: str, base: Path) -> list[Path]:
    """Write BASE.png, .svg and .pdf with panels side by side."""
    figure, grid = new_grid(1, len(panels), (max(5.6, 4.1 * len(panels)), 3.4))
    for axes, panel in zip(grid[0], panels, strict=True):
        _draw(axes, rows, axis, panel)
    figure.supxlabel(note, fontsize=7, color="#555555")
    return save_figure(figure, base)


def _draw(axes: Axes, rows: Sequence[Row], axis: Axis, panel: Panel) -> None:
    scale = 100 if panel.percent else 1
    lines = [(series, column) for column in panel.columns for series in _series(rows)]
    for (series, column), colour, mark in zip(lines, _cycle(COLOURS), _cycle(_MARKS), strict=False):
        points = spread(rows, series, column)
        if not points:
            continue
        x = [p[0] for p in points]
        mean = [scale * p[2] for p in points]
        error = [[scale * (p[2] - p[1]) for p in points], [scale * (p[3] - p[2]) for p in points]]
        label = " ".join(filter(None, (series, _short(column) if len(panel.columns) > 1 else "")))
        look: dict[str, Any] = {"color": colour, "marker": mark, "markersize": 4, "capsize": 2}
        axes.errorbar(x, mean, yerr=error, label=label or None, **look)
    for (name, values), colour in zip(panel.beside.items(), _cycle(COLOURS), strict=False):
        across, up = zip(*values, strict=True)
        axes.plot(across, up, linestyle="--", linewidth=1, color=colour, label=name, alpha=0.7)
    axes.set(xlabel=axis.title, ylabel=panel.title)
    for one, log in ((axes.xaxis, axis.log), (axes.yaxis, panel.log)):
        if log:
            _log_scale(one)
    axes.grid(alpha=0.25, linewidth=0.5)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=7, frameon=False)


# A wider range leaves room for powers of ten alone.
_FEW = 1e4


def _log_scale(axis: XAxis | YAxis) -> None:
    """Set a logarithmic scale with 1, 2, 5, 10 … written out, or powers where they are many."""
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    low, high = axis.get_view_interval()
    if high < _FEW * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def spread(rows: Sequence[Row], series: str, column: str) -> list[tuple[float, float, float, float]]:
    """Return x with the minimum, the mean and the maximum over the seeds."""
    found: dict[float, list[float]] = {}
    for row in rows:
        if row["series"] == series and row.get(column) is not None:
            found.setdefault(row["x"], []).append(row[column])
    return [(x, min(v), sum(v) / len(v), max(v)) for x, v in sorted(found.items())]


def curve_cells(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return titles and cells: one line per x of every series, means with the range over the seeds."""
    known = [c for c in _COLUMNS if any(row.get(c) is not None for row in rows)]
    lines = dict.fromkeys((row["series"], row["x"]) for row in rows)
    named = any(series for series, _ in lines)
    cells = []
    for series, x in lines:
        here = [row for row in rows if (row["series"], row["x"]) == (series, x)]
        numbers = [_with_spread([row[c] for row in here if row.get(c) is not None], c) for c in known]
        cells.append([*([series] if named else []), "–" if x is None else f"{x:g}", *numbers])
    return [*(["series"] if named else []), "x", *(_short(c) for c in known)], cells


_COLUMNS = ("test clean", "test CRA at ε", "test CRA 36/255", "test CRA 108/255", "K_f", "K_hf", "tightness")


def _with_spread(values: Sequence[float], column: str) -> str:
    scale = 1 if column in ("K_f", "K_hf") else 100
    low, mean, high = (scale * v for v in (min(values), sum(values) / len(values), max(values)))
    return f"{mean:.1f} ({low:.1f} … {high:.1f})" if len(values) > 1 else f"{mean:.1f}"


def _series(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["series"] for row in rows))


def _short(column: str) -> str:
    """Return a column title without the split, which the note names."""
    return column.removeprefix("test ").removeprefix("val ")


def _cycle(values: Sequence[str]) -> list[str]:
    return list(values) * 4
