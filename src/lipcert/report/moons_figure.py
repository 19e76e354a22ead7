"""Pictures of two-moons classifiers: boundary, certified margin, and the points inside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import Tensor

from lipcert.certificates.certificate import Certificate
from lipcert.certificates.certifier import Certifier, certifier
from lipcert.certificates.loading import load
from lipcert.data import Dataset
from lipcert.recipes import read_recipe
from lipcert.report.figure import new_grid, save_figure
from lipcert.report.palette import CLASSES, GREY, WRONG
from lipcert.runs import Run
from lipcert.runs.rows import row_of
from lipcert.tables.kinds import CONSTANT, percent

LOSS_TITLES = {"cll": "CLL", "gloro": "GloRo", "cross-entropy": "Cross-entropy"}


@dataclass(frozen=True)
class PictureNumbers:
    """The numbers that a picture shows; `cra` is that of the training points."""

    loss: str
    eps: float
    slack: float | None
    k_f: float
    k_hf: float
    cra: float

    @classmethod
    def of(cls, run: Run) -> PictureNumbers:
        """Take the numbers of a finished run."""
        row = row_of(run)
        return cls(row.loss, row.eps, row.slack, row.k_f, row.k_hf, row.splits["train"].cra)


@dataclass(frozen=True)
class Picture:
    """A finished moons run with everything to draw."""

    numbers: PictureNumbers
    prover: Certifier
    data: Dataset
    certificate: Certificate

    @classmethod
    def of(cls, run: Run) -> Picture:
        """Load the run's model and certify its training points."""
        data = read_recipe(str(run.recipe)).make_data("train")
        prover = certifier(load(run.path), data.input_shape)
        return cls(PictureNumbers.of(run), prover, data, prover(data.x))

    def margin(self, x: Tensor) -> np.ndarray:
        """Return f₁ − f₀."""
        logits = self.prover.logits(x)
        return (logits[:, 1] - logits[:, 0]).numpy()

    @property
    def width(self) -> float:
        """Return εK₀₁, the margin in units of f₁ − f₀."""
        return self.numbers.eps * float(self.prover.proved.pairs[0, 1])


def draw_panel(axes: Axes, picture: Picture) -> None:
    """Draw a black boundary, grey margin lines, class colours, and red where wrong or not robust."""
    x, y = picture.data.x.numpy(), picture.data.y.numpy()
    robust = (
        (picture.certificate.prediction == picture.data.y) & picture.certificate.at(picture.numbers.eps)
    ).numpy()
    for label, colour in enumerate(CLASSES):
        chosen = robust & (y == label)
        axes.scatter(x[chosen, 0], x[chosen, 1], s=2, color=colour, linewidths=0)
    axes.scatter(x[~robust, 0], x[~robust, 1], s=3, color=WRONG, linewidths=0, zorder=3)
    _draw_lines(axes, picture)
    axes.set(xlim=(-1.3, 2.3), ylim=(-0.85, 1.35), xticks=[], yticks=[], aspect="equal")
    corner: dict[str, Any] = {
        "transform": axes.transAxes,
        "fontsize": 8,
        "zorder": 5,
        "bbox": {"fc": "white", "ec": "none", "alpha": 0.8, "pad": 1},
    }
    axes.text(0.02, 0.03, f"CRA {percent(picture.numbers.cra)}", ha="left", va="bottom", **corner)
    axes.text(0.98, 0.97, f"$K_{{hf}}$ {CONSTANT.text(picture.numbers.k_hf)}", ha="right", va="top", **corner)


def _draw_lines(axes: Axes, picture: Picture) -> None:
    across, along = np.meshgrid(np.linspace(-1.3, 2.3, 400), np.linspace(-0.85, 1.35, 250))
    grid = torch.from_numpy(np.stack([across.ravel(), along.ravel()], axis=1))
    margin = picture.margin(grid).reshape(across.shape)
    axes.contour(across, along, margin, levels=[0.0], colors="black", linewidths=1.2, zorder=4)
    width = picture.width
    if width > 0:
        axes.contour(
            across,
            along,
            margin,
            levels=[-width, width],
            colors=[GREY],
            linewidths=1.0,
            linestyles="solid",
            zorder=4,
        )


def draw_outputs(axes: Axes, picture: Picture) -> None:
    """Draw the distribution of the outputs, the margin in the same units, and the probability of the loss."""
    margin, y = picture.margin(picture.data.x), picture.data.y.numpy()
    reach = 1.05 * max(float(np.abs(margin).max()), picture.width)
    bins = np.linspace(-reach, reach, 80).tolist()
    for label, colour in enumerate(CLASSES):
        # One polygon: eighty bars take ten times as long.
        axes.hist(margin[y == label], bins=bins, color=colour, alpha=0.6, histtype="stepfilled")
    for edge in (-picture.width, picture.width):
        axes.axvline(edge, color=GREY, linewidth=1)
    probability = axes.twinx()
    t = np.linspace(-reach, reach, 400)
    numbers = picture.numbers
    slope = numbers.k_hf / numbers.k_f if numbers.k_f else 1.0
    probability.plot(t, 1 / (1 + np.exp(-np.clip(slope * t, -500, 500))), color="black", linewidth=1.2)
    probability.set(ylim=(-0.02, 1.02), yticks=[0, 0.5, 1])
    axes.set(xlabel="$f_1(x) - f_0(x)$", xlim=(-reach, reach), yticks=[])


def moons_figure(runs: Sequence[Run], path: Path) -> list[Path]:
    """Draw one row per loss and one column per margin width; a single width is drawn side by side."""
    pictures = [Picture.of(run) for run in runs]
    losses = list(dict.fromkeys(p.numbers.loss for p in pictures))
    widths = sorted({p.numbers.eps for p in pictures})
    figure, grid = _grid(*((len(losses), len(widths)) if len(widths) > 1 else (1, len(losses))))
    cells = dict(zip(product(losses, widths), grid.flat, strict=True))
    for picture in pictures:
        draw_panel(cells[picture.numbers.loss, picture.numbers.eps], picture)
    for (loss, eps), axes in cells.items():
        axes.set(xticks=[], yticks=[])  # a failed training stays empty
        title, width = LOSS_TITLES.get(loss, loss), f"$2\\varepsilon = {2 * eps:g}$"
        if len(widths) == 1:
            axes.set_title(f"{title}, {width}", fontsize=10)
        elif loss == losses[0]:
            axes.set_title(width, fontsize=10)
        if len(widths) > 1 and eps == widths[0]:
            axes.set_ylabel(title, fontsize=10)
    return _save(figure, path)


def slack_figure(runs: Sequence[Run], path: Path) -> list[Path]:
    """Draw one panel per slack."""
    pictures = [Picture.of(run) for run in runs]
    figure, grid = _grid(1, len(pictures))
    for axes, picture in zip(grid[0], pictures, strict=True):
        draw_panel(axes, picture)
        slack = f"{picture.numbers.slack:.12f}".rstrip("0")
        axes.set_title(f"$p = {slack}$", fontsize=10)
    grid[0][0].set_ylabel("CLL", fontsize=10)
    return _save(figure, path)


def soc_figure(runs: Sequence[Run], path: Path) -> list[Path]:
    """Draw one row per γ and one column per depth; runs of another loss get their own column."""
    places = [_depth_and_gamma(run) for run in runs]
    depths = sorted({place[0] for place in places if place})
    gammas = sorted({place[1] for place in places if place})
    figure, grid = _grid(max(len(gammas), 1), len(depths) + 1)
    others = iter(grid[:, -1])
    for run, place in zip(runs, places, strict=True):
        picture = Picture.of(run)
        axes = next(others) if place is None else grid[gammas.index(place[1]), depths.index(place[0])]
        draw_panel(axes, picture)
        if place is None:
            axes.set_title(LOSS_TITLES[picture.numbers.loss], fontsize=10)
    for axes in others:
        axes.axis("off")
    for axes, depth in zip(grid[0], depths, strict=False):
        axes.set_title(f"SOC, {depth} layers", fontsize=10)
    for axes, gamma in zip(grid[:, 0], gammas, strict=False):
        axes.set_ylabel(f"$\\gamma = {gamma:g}$", fontsize=10)
    return _save(figure, path)


def _depth_and_gamma(run: Run) -> tuple[int, float] | None:
    """Return depth and γ of a run with certificate regularisation."""
    recipe = read_recipe(str(run.recipe))
    gamma = recipe.loss.arguments.get("gamma")
    return None if gamma is None else (int(recipe.model.arguments["depth"]), float(gamma))


def teaser_figure(runs: Sequence[Run], path: Path) -> list[Path]:
    """Draw one column per loss: the classifier, and its outputs below."""
    pictures = [Picture.of(run) for run in runs]
    figure, grid = _grid(2, len(pictures), height_ratios=[1.25, 1])
    for column, picture in zip(grid.T, pictures, strict=True):
        draw_panel(column[0], picture)
        draw_outputs(column[1], picture)
        column[0].set_title(LOSS_TITLES.get(picture.numbers.loss, picture.numbers.loss), fontsize=11)
    return _save(figure, path)


def _grid(rows: int, columns: int, **settings: Any) -> tuple[Figure, np.ndarray]:
    """Make panels in the shape of the moons, with room for a legend below."""
    size = (3.2 * columns, 2.1 * rows + 0.6)
    return new_grid(rows, columns, size, **settings)


def _save(figure: Figure, path: Path) -> list[Path]:
    draw_legend(figure)
    path.parent.mkdir(parents=True, exist_ok=True)
    return save_figure(figure, path)


def draw_legend(figure: Figure) -> None:
    """Draw one legend for all panels, below them."""
    handles = [
        Line2D([], [], color=CLASSES[0], marker="o", linestyle="", markersize=4, label="upper moon"),
        Line2D([], [], color=CLASSES[1], marker="o", linestyle="", markersize=4, label="lower moon"),
        Line2D([], [], color=WRONG, marker="o", linestyle="", markersize=4, label="wrong or not robust"),
        Line2D([], [], color="black", label="decision boundary"),
        Line2D([], [], color=GREY, label="certified margin ε"),
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=5 if figure.get_figwidth() > 8 else 3,
        fontsize=8,
        frameon=False,
    )
