"""Figures on matplotlib's object interface: no global backend, and nothing to close."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lipcert.atomic import write_atomically


def new_figure(size: tuple[float, float]) -> tuple[Figure, Axes]:
    """Make a figure with one diagram; the size is in inches."""
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots()


def new_grid(rows: int, columns: int, size: tuple[float, float], **settings: Any) -> tuple[Figure, Any]:
    """Make a figure with rows and columns of diagrams, as an array of axes."""
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **settings)


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
    label = figure.text(0.002, 0.998, _label.get(), fontsize=5, va="top")
    figure.savefig(content, format=path.suffix[1:], dpi=dpi)
    label.remove()
    write_atomically(path, content.getvalue())
    return path


def save_figure(figure: Figure, base: Path) -> list[Path]:
    """Write BASE.png for screens, BASE.svg for pages and BASE.pdf for print."""
    return [write_figure(figure, base.with_name(base.name + suffix)) for suffix in (".png", ".svg", ".pdf")]
