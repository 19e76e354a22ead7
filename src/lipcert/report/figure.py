"""Figures on matplotlib's object interface, all in one style: no global backend, and nothing to close.

A figure for a page is `PAGE_WIDTH` inches wide. The site shows it about 690 pixels wide, so that text of 9
points has 12 pixels there.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lipcert.atomic import write_atomically
from lipcert.report.palette import INK

# Inches of a figure across a page, and the sizes of its text in points.
PAGE_WIDTH = 7.2
TEXT, SMALL, NOTE = 10.0, 9.0, 8.0

# Letters of a note that fit into an inch.
_LETTERS = 16


def new_figure(size: tuple[float, float]) -> tuple[Figure, Axes]:
    """Make a figure with one diagram; the size is in inches."""
    figure, grid = new_grid(1, 1, size)
    axes: Axes = grid[0][0]
    return figure, axes


def new_grid(rows: int, columns: int, size: tuple[float, float], **settings: Any) -> tuple[Figure, Any]:
    """Make a figure with rows and columns of diagrams, as an array of axes."""
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **settings)
    for axes in grid.flat:
        style(axes)
    return figure, grid


def style(axes: Axes) -> None:
    """Set the sizes of the text, and leave out the frame where nothing is."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=SMALL)
    axes.title.set_fontsize(TEXT)
    axes.xaxis.label.set_fontsize(TEXT)
    axes.yaxis.label.set_fontsize(TEXT)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.set_axisbelow(True)


def write_note(figure: Figure, note: str) -> None:
    """Write below all diagrams with what they were found, in lines that fit."""
    lines = textwrap.wrap(note, int(_LETTERS * figure.get_figwidth()))
    figure.supxlabel("\n".join(lines), fontsize=NOTE, color=INK)


_label: ContextVar[str] = ContextVar("label", default="")


@contextmanager
def labelled(text: str) -> Iterator[None]:
    """Write a text into the corner of every figure that is written inside this context."""
    before = _label.set(text)
    try:
        yield
    finally:
        _label.reset(before)


def write_figure(figure: Figure, path: Path, dpi: int = 200) -> Path:
    """Write a figure in the format of its name, all or nothing."""
    content = io.BytesIO()
    label = figure.text(0.002, 0.998, _label.get(), fontsize=NOTE, color=INK, va="top", in_layout=False)
    figure.savefig(content, format=path.suffix[1:], dpi=dpi)
    label.remove()
    write_atomically(path, content.getvalue())
    return path


def save_figure(figure: Figure, base: Path) -> list[Path]:
    """Write BASE.png for screens, BASE.svg for pages and BASE.pdf for print."""
    return [write_figure(figure, base.with_name(base.name + suffix)) for suffix in (".png", ".svg", ".pdf")]
