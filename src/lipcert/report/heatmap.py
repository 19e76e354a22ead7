"""Draw the numbers of a grid as colours, with the numbers written into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from lipcert.report.figure import NOTE, PAGE_WIDTH, SMALL, TEXT, new_grid, save_figure, write_note
from lipcert.tables.kinds import WHOLE_PERCENT

# Mean numbers by (row, column); missing numbers stay white.
Cells = Mapping[tuple[str, str], float]


def heatmaps(
    panels: Mapping[str, Cells], rows: Sequence[str], columns: Sequence[str], note: str, base: Path
) -> list[Path]:
    """Write BASE.png, .svg and .pdf: one map per panel, one below the other, in percent."""
    height = 0.27 * len(rows) + 1.5
    figure, grid = new_grid(len(panels), 1, (PAGE_WIDTH, height * len(panels) + 0.3))
    for axes, (title, cells) in zip(grid[:, 0], panels.items(), strict=True):
        _draw(axes, title, cells, rows, columns)
    write_note(figure, note)
    return save_figure(figure, base)


def _draw(axes: Axes, title: str, cells: Cells, rows: Sequence[str], columns: Sequence[str]) -> None:
    values = np.array([[100 * cells.get((row, column), np.nan) for column in columns] for row in rows])
    image = axes.imshow(values, cmap="cividis", aspect="auto")
    middle = (image.norm.vmin + image.norm.vmax) / 2 if np.isfinite(values).any() else 0.0  # type: ignore[operator]
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = "white" if value < middle else "black"
            text = WHOLE_PERCENT.text(float(value) / 100)
            axes.text(j, i, text, ha="center", va="center", fontsize=SMALL, color=colour)
    axes.set_title(title, fontsize=TEXT)
    axes.set_xticks(
        range(len(columns)), columns, rotation=35, ha="right", rotation_mode="anchor", fontsize=SMALL
    )
    axes.set_yticks(range(len(rows)), rows, fontsize=SMALL)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure = axes.get_figure(root=True)
    assert figure is not None
    bar = figure.colorbar(image, ax=axes, pad=0.015, aspect=25)
    bar.set_label("%", fontsize=SMALL, rotation=0)
    bar.ax.tick_params(labelsize=NOTE)
    bar.outline.set_visible(False)
