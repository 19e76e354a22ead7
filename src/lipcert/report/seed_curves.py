"""Numbers of many trainings along an axis: means with the spread of the seeds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from matplotlib.axes import Axes

from lipcert.report.axis_numbers import number_axis
from lipcert.report.end_labels import EndLabel, label_ends
from lipcert.report.figure import PAGE_WIDTH, SMALL, new_grid, save_figure, write_note
from lipcert.report.hidden_curves import hidden_curves, joined
from lipcert.report.palette import INK, MARKS, method_colour
from lipcert.report.plotted_curve import Curve
from lipcert.tables.kinds import Kind

# Letters of a name that leave room for a second diagram in the row.
_SHORT = 12

_LINES = ("-", "--", "-.")  # by quantity; dotted is what the paper prints


@dataclass(frozen=True)
class PrintedCurve:
    """Hold what the paper prints, in the unit of the panel."""

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
    """Draw panels as BASE.png, .svg and .pdf: two in a row if all names of curves are short."""
    names = [_names(panel) for panel in panels]
    short = all(len(label.text) <= _SHORT for labels in names for label in labels)
    columns = 2 if short and len(panels) > 1 else 1
    rows = -(-len(panels) // columns)
    figure, grid = new_grid(rows, columns, (PAGE_WIDTH, (2.9 if rows == 1 else 2.5) * rows + 0.4))
    write_note(figure, note)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        _draw(axes, axis, panel)
    for axes, labels in zip(grid.flat, names, strict=False):
        label_ends(axes, labels)
    return save_figure(figure, base)


def _draw(axes: Axes, axis: Axis, panel: Panel) -> None:
    curves = joined(panel.curves)
    hidden = hidden_curves(curves, panel.log)
    for curve, mark in zip(curves, cycle(MARKS), strict=False):
        _draw_curve(axes, curve, mark, panel.kind.scale, wide=curve in hidden)
    for printed in panel.printed:
        across, up = zip(*printed.points, strict=True)
        axes.plot(across, up, ":", linewidth=1.4, color=method_colour(printed.method))
    if panel.printed:
        first = panel.printed[0].points[0]
        axes.annotate("dotted: paper", first, (7, -2), textcoords="offset points", fontsize=SMALL, color=INK)
    axes.set(xlabel=axis.title, ylabel=panel.title)
    xs = sorted({x for curve in curves for x, _ in curve.points})
    number_axis(axes.xaxis, xs, log=axis.log)
    number_axis(axes.yaxis, (), log=panel.log)


def _draw_curve(axes: Axes, curve: Curve, mark: str, scale: float, wide: bool) -> None:
    """Draw means and ranges; a curve that lies under another is a wide band behind it."""
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
        color=method_colour(curve.method),
        marker=mark,
        linestyle="-" if wide else _LINES[curve.quantity % len(_LINES)],
        linewidth=6.0 if wide else 1.6,
        markersize=9 if wide else 4.5,
        markeredgewidth=0,
        alpha=0.4 if wide else 1.0,
        elinewidth=1.2,
        capsize=2,
        zorder=1.5 if wide else 2.5,
    )


def _names(panel: Panel) -> list[EndLabel]:
    """Return the names of curves, and where each ends."""
    found = []
    for curve in joined(panel.curves):
        x, last = curve.points[-1]
        name = re.sub(r"K_(\w+)", r"$K_{\1}$", curve.name)
        found.append(EndLabel(name, method_colour(curve.method), x, panel.kind.scale * last.mean))
    return [label for label in found if label.text]
