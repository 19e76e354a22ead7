"""Numbers of many trainings along an axis: means with the spread of the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.ticker import LogLocator, NullFormatter

from lipcert.report.figure import new_grid, save_figure
from lipcert.report.palette import INK, MARKS, method_colour
from lipcert.tables.kinds import Kind, Range

_LINES = ("-", "--", "-.")  # by quantity; dotted is what the paper prints


@dataclass(frozen=True)
class Curve:
    """One quantity of one method: a mean with its range at every x."""

    name: str
    method: str  # gives the colour
    quantity: int  # gives the line: 0, solid, for the first of a panel
    points: Sequence[tuple[float, Range]]


@dataclass(frozen=True)
class PrintedCurve:
    """Hold what the paper prints, in the unit of the panel."""

    name: str
    method: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """One diagram."""

    title: str
    kind: Kind
    curves: Sequence[Curve]
    log: bool = False
    printed: Sequence[PrintedCurve] = ()


@dataclass(frozen=True)
class Axis:
    """The number in which the trainings differ."""

    title: str
    log: bool = False


def draw_curves(axis: Axis, panels: Sequence[Panel], note: str, base: Path) -> list[Path]:
    """Draw panels side by side as BASE.png, .svg and .pdf."""
    figure, grid = new_grid(1, len(panels), (max(5.6, 4.1 * len(panels)), 3.4))
    for axes, panel in zip(grid[0], panels, strict=True):
        _draw(axes, axis, panel)
    figure.supxlabel(note, fontsize=7, color=INK)
    return save_figure(figure, base)


def _draw(axes: Axes, axis: Axis, panel: Panel) -> None:
    for curve, mark in zip(panel.curves, cycle(MARKS), strict=False):
        _draw_curve(axes, curve, mark, panel.kind.scale)
    for printed in panel.printed:
        across, up = zip(*printed.points, strict=True)
        axes.plot(across, up, ":", linewidth=1.2, color=method_colour(printed.method), label=printed.name)
    axes.set(xlabel=axis.title, ylabel=panel.title)
    for one, log in ((axes.xaxis, axis.log), (axes.yaxis, panel.log)):
        if log:
            _log_scale(one)
    axes.grid(alpha=0.25, linewidth=0.5)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=7, frameon=False)


def _draw_curve(axes: Axes, curve: Curve, mark: str, scale: float) -> None:
    low, mean, high = (
        [scale * number for number in numbers]
        for numbers in zip(*((v.least, v.mean, v.most) for _, v in curve.points), strict=True)
    )
    axes.errorbar(
        [x for x, _ in curve.points],
        mean,
        yerr=[
            [m - a for a, m in zip(low, mean, strict=True)],
            [b - m for b, m in zip(high, mean, strict=True)],
        ],
        label=curve.name or None,
        color=method_colour(curve.method),
        marker=mark,
        linestyle=_LINES[curve.quantity % len(_LINES)],
        markersize=4,
        capsize=2,
    )


# Beyond so many powers of ten there is room for them alone.
_FEW = 1e4


def _log_scale(axis: XAxis | YAxis) -> None:
    """Set a logarithmic scale with 1, 2, 5, 10 … written out, or powers where they are many."""
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    low, high = axis.get_view_interval()
    if high < _FEW * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
