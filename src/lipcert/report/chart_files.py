"""Print the diagrams of a report as PNG, SVG and PDF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from lipcert.report.charts import Chart
from lipcert.report.figure import NOTE, new_figure, save_figure
from lipcert.report.mark_labels import draw_marks
from lipcert.report.palette import LINES, Look

# Intervals of an axis at most: more numbers would touch.
_TICKS = 6


def print_charts(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Write one file per chart and format."""
    folder.mkdir(parents=True, exist_ok=True)
    return [path for chart in charts for path in _print(chart, folder / chart.name)]


def _print(chart: Chart, base: Path) -> list[Path]:
    figure, axes = new_figure((5.2, 3.6))
    draw_chart(axes, chart)
    return save_figure(figure, base)


def draw_chart(axes: Axes, chart: Chart) -> None:
    """Draw lines, marks and axes of one diagram."""
    for line in chart.lines:
        drawn: dict[str, Any] = {"label": line.name, "markersize": 3, **_style(line.look)}
        if any(line.spread):
            axes.errorbar(line.x, line.y, yerr=line.spread, marker="o", capsize=2, **drawn)
        else:
            axes.plot(line.x, line.y, marker="o" if len(line.x) < 20 else "", **drawn)
    axes.set(xlabel=chart.across, ylabel=chart.up)
    axes.set_xscale("log" if chart.log_x else "linear")
    axes.set_yscale("log" if chart.log_y else "linear")
    _space_ticks(axes, chart)
    if len(chart.lines) <= 20:
        axes.legend(fontsize=NOTE, frameon=False)
    draw_marks(axes, chart.marks)


def _space_ticks(axes: Axes, chart: Chart) -> None:
    """Leave room between the numbers of a linear axis; epochs are whole numbers."""
    if not chart.log_x:
        axes.xaxis.set_major_locator(MaxNLocator(_TICKS, integer=chart.across == "epoch"))


def _style(look: Look) -> dict[str, str]:
    return {"color": look.colour, "linestyle": LINES[look.dash]}
