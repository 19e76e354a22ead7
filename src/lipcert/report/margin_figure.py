"""Figure 1 of the paper: classifiers with a small and a large constant, and the slope that each allows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from lipcert.report.figure import TEXT
from lipcert.report.moons_figure import Picture, draw_panel, moons_grid, pictures_of, save_moons
from lipcert.report.palette import GREY
from lipcert.sweeps.trial import Trial
from lipcert.tables.kinds import CONSTANT


def margin_figure(runs: Sequence[Trial], path: Path) -> list[Path]:
    """Draw one column per run: the steepest probability across the margin, the classifier below."""
    pictures = sorted(pictures_of(runs), key=lambda picture: picture.numbers.k_hf)
    figure, grid = moons_grid(2, len(pictures), height_ratios=[0.7, 1.25])
    for column, picture in zip(grid.T, pictures, strict=True):
        _draw_slope(column[0], picture)
        draw_panel(column[1], picture)
    grid[0][0].set_ylabel("probability")
    return save_moons(figure, path)


def _draw_slope(axes: Axes, picture: Picture) -> None:
    """Draw the logistic whose argument rises by K_hf per unit of input distance."""
    eps, k_hf = picture.numbers.eps, picture.numbers.k_hf
    distance = np.linspace(-2 * eps, 2 * eps, 801)
    axes.axvspan(-eps, eps, color=GREY, alpha=0.15, linewidth=0)
    axes.plot(distance, 1 / (1 + np.exp(-k_hf * distance)), color="black", linewidth=1.2)
    axes.set_xticks([-eps, 0.0, eps], ["−ε", "0", "ε"])
    axes.set(xlabel="distance to the boundary [L2]", yticks=[0, 0.5, 1], ylim=(-0.05, 1.05))
    axes.set_title(f"slope at the boundary: $K_{{hf}}/4$ = {CONSTANT.text(k_hf / 4)}", fontsize=TEXT)
