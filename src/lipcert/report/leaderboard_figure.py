"""Draw the leaderboard of bundled models: accuracy against radius, as their certificates state it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from lipcert.report.figure import PAGE_WIDTH, TEXT, new_grid, write_note
from lipcert.report.leaderboard import Entry
from lipcert.report.radius_curves import RadiusCurve, draw_radius_curves
from lipcert.tables.kinds import percent, printed_radius

# Inches of a diagram, and of each name beyond those that fit beside it.
_HEIGHT, _LINE, _FIT = 3.4, 0.2, 14


def leaderboard_figure(board: Mapping[str, Sequence[Entry]]) -> Figure:
    """Draw one diagram per data set; models with a single radius are named below."""
    curves = {
        data: entries for data, found in board.items() if (entries := [e for e in found if _is_curve(e)])
    }
    heights = [_HEIGHT + _LINE * max(len(entries) - _FIT, 0) for entries in curves.values()]
    size = (PAGE_WIDTH, sum(heights) + 0.3)
    figure, grid = new_grid(max(len(curves), 1), 1, size, height_ratios=heights or [1.0])
    write_note(figure, _note([e for found in board.values() for e in found if not _is_curve(e)]))
    for axes, (data, entries) in zip(grid[:, 0], curves.items(), strict=False):
        draw_radius_curves(axes, list(map(_curve, entries)))
        axes.set_title(data, fontsize=TEXT, loc="left")
    return figure


def leaderboard_words(board: Mapping[str, Sequence[Entry]]) -> str:
    """Say in one line what the figure shows, for readers who cannot see it."""
    return "; ".join(
        f"{entry.name}: {percent(entry.clean)} clean, "
        + ", ".join(
            f"{percent(value)} at {printed_radius(radius)}" for radius, value in entry.certified.items()
        )
        for entries in board.values()
        for entry in entries
    )


def _is_curve(entry: Entry) -> bool:
    return len(entry.certified) > 1


def _curve(entry: Entry) -> RadiusCurve:
    points = [(0.0, entry.clean), *entry.certified.items()]
    name = entry.name.removeprefix(f"{entry.data}-")
    return RadiusCurve(name, entry.method, [(radius, 100 * value) for radius, value in points])


def _note(others: Sequence[Entry]) -> str:
    """Say what holds for all, and name the models with a single radius."""
    said = [
        f"{entry.name}: {percent(value)} at {printed_radius(radius)}"
        for entry in others
        for radius, value in entry.certified.items()
    ]
    singles = f"; with a single radius: {', '.join(said)}" if said else ""
    return f"bundled models, correct and certified within the radius{singles}"
