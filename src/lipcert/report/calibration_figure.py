"""Figure 3 of the paper: CLL's calibrated logistic over the distance to the boundary, and slack."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from lipcert.losses.cll import calibrated_scale
from lipcert.report.figure import new_grid, save_figure
from lipcert.report.palette import BLUE, GREEN, GREY, RED

# The margin of the paper's two-moons example, and a slack with which both ends of the curve can be seen: the
# paper prints none for this figure.
_EPS, _SLACK = 0.15, 0.05
_SLACKS = {0.01: BLUE, 0.1: GREEN, 0.3: RED}
_DISTANCE = np.linspace(-2 * _EPS, 2.6 * _EPS, 461)


def probability(distance: np.ndarray, eps: float, slack: float, offset: float) -> np.ndarray:
    """Return what the calibrated logistic makes of a signed distance, f(x)/K: h((d − δ)/σ)."""
    return np.asarray(1 / (1 + np.exp(-(distance - offset) / calibrated_scale(eps, slack))))


def calibration_figure(base: Path) -> list[Path]:
    """Draw the logistic without and with the margin offset, and the loss for three slacks."""
    figure, grid = new_grid(1, 3, (11.4, 3.2))
    _draw_logistic(grid[0][0], offset=0.0, title="without margin offset")
    _draw_logistic(grid[0][1], offset=_EPS, title="with margin offset ε")
    _draw_slack(grid[0][2])
    return save_figure(figure, base)


def _draw_logistic(axes: Axes, offset: float, title: str) -> None:
    axes.plot(_DISTANCE, probability(_DISTANCE, _EPS, _SLACK, offset), color=BLUE)
    for distance, name in ((offset - _EPS, "p"), (offset, "½"), (offset + _EPS, "1 − p")):
        height = float(probability(np.array(distance), _EPS, _SLACK, offset))
        axes.plot([distance], [height], "o", color=BLUE, markersize=4)
        axes.annotate(name, (distance, height), (7, -9), textcoords="offset points", fontsize=8)
    axes.set(ylabel="probability of class 1", ylim=(-0.06, 1.06))
    _frame(axes, title)


def _draw_slack(axes: Axes) -> None:
    curves = {p: -np.log(probability(_DISTANCE, _EPS, p, _EPS)) for p in _SLACKS}
    for p, colour in _SLACKS.items():
        axes.plot(_DISTANCE, curves[p], color=colour, label=f"p = {p:g}")
    # From the least slack to the most, at a place on the wrong side of the margin.
    place = int(np.searchsorted(_DISTANCE, -_EPS))
    least, most = (curves[p][place] for p in (min(_SLACKS), max(_SLACKS)))
    axes.annotate(
        "",
        (_DISTANCE[place], most),
        (_DISTANCE[place], least),
        arrowprops={"arrowstyle": "->", "color": GREY},
    )
    axes.text(_DISTANCE[place], 0.75 * least, "more slack ", ha="right", fontsize=8)
    axes.set(ylabel="loss of a sample of class 1 [nats]")
    axes.legend(fontsize=8, frameon=False)
    _frame(axes, "slack p: loss with margin offset ε")


def _frame(axes: Axes, title: str) -> None:
    axes.axvspan(-_EPS, _EPS, color=GREY, alpha=0.15, linewidth=0)
    axes.set_xticks([-_EPS, 0.0, _EPS], ["−ε", "0", "ε"])
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("signed distance to the boundary, f(x)/K")
    axes.grid(alpha=0.25, linewidth=0.5)
