"""Draw the numbers of a grid as colours, with the numbers written into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from lipcert.report.figure import new_grid, save_figure
from lipcert.report.palette import INK
from lipcert.tables.kinds import WHOLE_PERCENT

# Mean numbers by (row, column); missing numbers stay white.
Cells = Mapping[tuple[str, str], float]


def heatmaps(
    panels: Mapping[str, Cells], rows: Sequence[str], columns: Sequence[str], note: str, base: Path
) -> list[Path]:
    """Write BASE.png, .svg and .pdf: one map per panel, side by side, in percent."""
    width = (0.55 * len(columns) + 1.8) * len(panels)
    figure, grid = new_grid(1, len(panels), (width, 0.38 * len(rows) + 1.6))
    for axes, (title, cells) in zip(grid[0], panels.items(), strict=True):
        _draw(axes, title, cells, rows, columns)
    figure.supxlabel(note, fontsize=7, color=INK)
    return save_figure(figure, base)


def _draw(axes: Axes, title: str, cells: Cells, rows: Sequence[str], columns: Sequence[str]) -> None:
    values = np.array([[cells.get((row, column), np.nan) for column in columns] for row in rows])
    image = axes.imshow(values, cmap="cividis", aspect="auto")
    middle = (image.norm.vmin + image.norm.vmax) / 2 if np.isfinite(values).any() else 0.0  # type: ignore[operator]
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = "white" if value < middle else "black"
            text = WHOLE_PERCENT.text(float(value))
            axes.text(j, i, text, ha="center", va="center", fontsize=7, color=colour)
    axes.set_title(title, fontsize=9)
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="right", fontsize=7)
    axes.set_yticks(range(len(rows)), rows, fontsize=7)
