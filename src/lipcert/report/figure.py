"""Figures on matplotlib's object interface: no global backend, and nothing to close."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure


def new_figure(size: tuple[float, float]) -> tuple[Figure, Axes]:
    """Make a figure with one diagram; the size is in inches."""
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots()


def new_grid(rows: int, columns: int, size: tuple[float, float], **settings: Any) -> tuple[Figure, Any]:
    """Make a figure with rows and columns of diagrams, as an array of axes."""
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **settings)


def save_figure(figure: Figure, base: Path) -> list[Path]:
    """Write BASE.png for screens, BASE.svg for pages and BASE.pdf for print."""
    written = [base.with_name(base.name + suffix) for suffix in (".png", ".svg", ".pdf")]
    for path in written:
        figure.savefig(path, dpi=200)
    return written
