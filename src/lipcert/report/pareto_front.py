"""Draw clean against certified accuracy of many trainings, with the front of the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from matplotlib.axes import Axes

from lipcert.report.figure import NOTE, PAGE_WIDTH, TEXT, new_grid, save_figure, write_note
from lipcert.report.mark_labels import spread
from lipcert.report.palette import MARK_SIGNS, MARKS, method_colour
from lipcert.tables.grouping import grouped

# The least distance between two labels, as a part of the width of a diagram.
_LABEL_GAP = 0.06

# Clean and certified accuracy of a training, and what it was trained with.
Point = tuple[float, float, str]


def front(points: Sequence[Point]) -> list[Point]:
    """Return the points that no other point beats in both accuracies, sorted by clean accuracy.

    Example:
        >>> front([(0.7, 0.5, "a"), (0.6, 0.55, "b"), (0.65, 0.45, "c")])
        [(0.6, 0.55, 'b'), (0.7, 0.5, 'a')]
    """
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (-p[0], -p[1])):
        if not best or point[1] > best[-1][1]:
            best.append(point)
    return best[::-1]


def height(points: Sequence[Point], clean: float) -> float | None:
    """Interpolate the front's certified accuracy at a clean accuracy; return None outside its range.

    Example:
        >>> round(height([(0.6, 0.5, ""), (0.7, 0.4, "")], 0.65), 3)
        0.45
    """
    line = front(points)
    for (x, y, _), (next_x, next_y, _) in pairwise(line):
        if x <= clean <= next_x:
            return y + (next_y - y) * (clean - x) / (next_x - x)
    return line[0][1] if len(line) == 1 and clean == line[0][0] else None


def draw_fronts(panels: Mapping[str, Mapping[str, Sequence[Point]]], note: str, base: Path) -> list[Path]:
    """Draw one diagram per certified accuracy, with the points of each series, as BASE.png, .svg and .pdf."""
    figure, grid = new_grid(1, len(panels), (PAGE_WIDTH, 4.4))
    write_note(figure, note)
    for axes, (title, series) in zip(grid[0], panels.items(), strict=True):
        _draw(axes, title, series)
    return save_figure(figure, base)


def _draw(axes: Axes, title: str, series: Mapping[str, Sequence[Point]]) -> None:
    axes.set(xlabel="clean accuracy [%]", ylabel=title)
    axes.margins(x=0.06, y=0.24)  # room for the labels above and below
    for (name, points), mark in zip(series.items(), MARKS, strict=False):
        colour = method_colour(name)
        x, y = ([100 * point[i] for point in points] for i in (0, 1))
        axes.plot(x, y, mark, color=colour, markersize=5)
        best = front(points)
        line_x, line_y = ([100 * point[i] for point in best] for i in (0, 1))
        axes.plot(line_x, line_y, color=colour, linewidth=1, alpha=0.6)
    for (name, points), edge in zip(series.items(), (1.0, 0.0), strict=False):
        _label(axes, points, edge, method_colour(name))
    for i, (name, mark) in enumerate(zip(series, MARK_SIGNS, strict=False)):
        text = f"{mark} {name}"
        colour = method_colour(name)
        axes.text(0.1, 0.42 - 0.07 * i, text, color=colour, fontsize=TEXT, transform=axes.transAxes)


def _label(axes: Axes, points: Sequence[Point], edge: float, colour: str) -> None:
    """Name every setting once, at the upper or the lower edge, with a line to the mean of its seeds."""
    alike = grouped(points, lambda point: point[2])
    centres = sorted(
        (fmean(p[0] for p in own), fmean(p[1] for p in own), name) for name, own in alike.items()
    )
    left, right = axes.get_xlim()
    places = spread([(100 * x - left) / (right - left) for x, _, _ in centres], _LABEL_GAP)
    inwards = -0.02 if edge else 0.02
    for (x, y, name), place in zip(centres, places, strict=True):
        axes.annotate(
            name,
            xy=(100 * x, 100 * y),
            xytext=(place, edge + inwards),
            textcoords=axes.transAxes,
            fontsize=NOTE,
            color=colour,
            rotation=90,
            ha="center",
            va="top" if edge else "bottom",
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "alpha": 0.5},
        )
