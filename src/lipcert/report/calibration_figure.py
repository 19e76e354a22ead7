"""Figure 3 of the paper: CLL's calibrated logistic over the distance to the boundary, and slack."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from lipcert.losses.cll import calibrated_scale
from lipcert.report.figure import PAGE_WIDTH, SMALL, TEXT, new_grid, save_figure
from lipcert.report.palette import BLUE, GREY, INK, shades

# The margin of the paper's two-moons example, and a slack with which both ends of the curve can be seen: the
# paper prints none for this figure.
_EPS, _SLACK = 0.15, 0.05
_SLACKS = (0.01, 0.1, 0.3)
_DISTANCE = np.linspace(-2 * _EPS, 2.6 * _EPS, 461)


def probability(distance: np.ndarray, eps: float, slack: float, offset: float) -> np.ndarray:
    """Return what the calibrated logistic makes of a signed distance, f(x)/K: h((d − δ)/σ)."""
    return np.asarray(1 / (1 + np.exp(-(distance - offset) / calibrated_scale(eps, slack))))


def calibration_figure(base: Path) -> list[Path]:
    """Draw the logistic without and with the margin offset, and the loss for three slacks."""
    figure, grid = new_grid(1, 2, (PAGE_WIDTH, 3.3))
    _draw_logistics(grid[0][0])
    _draw_slack(grid[0][1])
    return save_figure(figure, base)


def _draw_logistics(axes: Axes) -> None:
    pale, full = shades(BLUE, 2)
    for offset, colour, name, place in ((0.0, pale, "offset 0", (-7, 5)), (_EPS, full, "offset ε", (7, -12))):
        axes.plot(_DISTANCE, probability(_DISTANCE, _EPS, _SLACK, offset), color=colour, linewidth=1.8)
        for distance, mark in ((offset - _EPS, "p"), (offset, f"½, {name}"), (offset + _EPS, "1 − p")):
            height = float(probability(np.array(distance), _EPS, _SLACK, offset))
            axes.plot([distance], [height], "o", color=colour, markersize=4.5)
            axes.annotate(
                mark,
                (distance, height),
                place,
                textcoords="offset points",
                ha="right" if place[0] < 0 else "left",
                fontsize=SMALL,
                color=INK,
            )
    axes.set(ylabel="probability of class 1", ylim=(-0.08, 1.12), yticks=[0, 0.5, 1])
    _frame(axes, "the calibrated logistic")


def _draw_slack(axes: Axes) -> None:
    for p, colour in zip(sorted(_SLACKS, reverse=True), shades(BLUE, len(_SLACKS)), strict=True):
        loss = -np.log(probability(_DISTANCE, _EPS, p, _EPS))
        axes.plot(_DISTANCE, loss, color=colour, linewidth=1.8)
        axes.annotate(
            f"p = {p:g}",
            (_DISTANCE[0], loss[0]),
            (6, 2),
            textcoords="offset points",
            va="bottom",
            fontsize=SMALL,
            color=INK,
        )
    axes.set(ylabel="loss of a sample of class 1 [nats]", ylim=(0, 16))
    _frame(axes, "the loss with offset ε, slack p")


def _frame(axes: Axes, title: str) -> None:
    axes.axvspan(-_EPS, _EPS, color=GREY, alpha=0.15, linewidth=0)
    axes.set_xticks([-_EPS, 0.0, _EPS], ["−ε", "0", "ε"])
    axes.set_title(title, fontsize=TEXT)
    axes.set_xlabel("distance to the boundary, f(x)/K [L2]")
