"""Pictures of two-moons classifiers: Figures 2 and 4 of the paper, D2 and D3 of its supplement.

They show the boundary, the certified margin, and the points inside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from lipcert.certificates.certificate import Certificate
from lipcert.certificates.certifier import Certifier, certifier
from lipcert.certificates.loading import load
from lipcert.data import Dataset
from lipcert.recipes.splits import Splits
from lipcert.report.figure import PAGE_WIDTH, SMALL, TEXT, new_grid, save_figure
from lipcert.report.palette import CLASSES, GREY, WRONG, loss_title
from lipcert.runs import Run
from lipcert.runs.rows import row_of
from lipcert.sweeps.trial import Trial
from lipcert.tables.kinds import CONSTANT, percent


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
    def of(cls, run: Run, data: Dataset) -> Picture:
        """Load the run's model and certify its training points."""
        prover = certifier(load(run.path, run.statement()), data.input_shape)
        return cls(PictureNumbers.of(run), prover, data, prover(data.x))

    def margin(self, x: Tensor) -> np.ndarray:
        """Return f₁ − f₀."""
        logits = self.prover.logits(x)
        return (logits[:, 1] - logits[:, 0]).numpy()

    @property
    def width(self) -> float:
        """Return εK₀₁, the margin in units of f₁ − f₀."""
        return self.numbers.eps * float(self.prover.proved.pairs[0, 1])


def pictures_of(runs: Sequence[Trial]) -> list[Picture]:
    """Return what is drawn of each run; points that several runs were trained on are loaded once."""
    splits = Splits()
    return [Picture.of(run.run, splits.of(run.recipe, "train")) for run in runs]


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
    draw_boundary(axes, picture, with_margin=True)
    axes.spines[:].set_visible(True)
    numbers = f"CRA {percent(picture.numbers.cra)}, $K_{{hf}}$ {CONSTANT.text(picture.numbers.k_hf)}"
    axes.set_xlabel(numbers, fontsize=SMALL)  # below the frame, where no line is


def draw_boundary(axes: Axes, picture: Picture, with_margin: bool = False) -> None:
    """Draw the boundary of the classes in black, and in grey where the radius is ε."""
    across, along = np.meshgrid(np.linspace(-1.3, 2.3, 400), np.linspace(-0.85, 1.35, 250))
    grid = torch.from_numpy(np.stack([across.ravel(), along.ravel()], axis=1))
    margin = picture.margin(grid).reshape(across.shape)
    axes.contour(across, along, margin, levels=[0.0], colors="black", linewidths=1.2, zorder=4)
    width = picture.width
    if with_margin and width > 0:
        levels = [-width, width]
        axes.contour(
            across, along, margin, levels=levels, colors=[GREY], linewidths=1.0, linestyles="solid", zorder=4
        )
    axes.set(xlim=(-1.3, 2.3), ylim=(-0.85, 1.35), xticks=[], yticks=[], aspect="equal")


def draw_outputs(axes: Axes, picture: Picture) -> None:
    """Draw the distribution of the outputs, the margin in the same units, and the probability of the loss.

    The x-axis has the units of the outputs, each picture its own: the paper compares how far they reach.
    """
    _draw_outputs(axes, picture)


def _draw_outputs(axes: Axes, picture: Picture) -> Axes:
    """Draw the outputs; return the axis of the probability."""
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
    axes.set(xlabel="$f_1(x) - f_0(x)$ [logits]", xlim=(-reach, reach), yticks=[])
    axes.xaxis.set_major_locator(MaxNLocator(4, symmetric=True))
    probability.tick_params(labelsize=SMALL)
    probability.spines["top"].set_visible(False)
    return probability


def moons_figure(runs: Sequence[Trial], path: Path, names: Sequence[str] = ()) -> list[Path]:
    """Draw Figure 4: a column per loss, or per name, and a row per margin."""
    pictures = pictures_of(runs)
    names = names or [loss_title(p.numbers.loss) for p in pictures]
    columns = list(dict.fromkeys(names))
    widths = sorted({p.numbers.eps for p in pictures})
    figure, grid = moons_grid(len(widths), len(columns))
    cells = dict(zip(product(widths, columns), grid.flat, strict=True))
    for name, picture in zip(names, pictures, strict=True):
        draw_panel(cells[picture.numbers.eps, name], picture)
    for (eps, name), axes in cells.items():
        axes.set(xticks=[], yticks=[])  # a failed training stays empty
        if eps == widths[0]:
            axes.set_title(name, fontsize=TEXT)
        if name == columns[0]:
            axes.set_ylabel(f"$2\\varepsilon = {2 * eps:g}$", fontsize=TEXT)
    return save_moons(figure, path)


def slack_figure(runs: Sequence[Trial], path: Path) -> list[Path]:
    """Draw Figure D2: one panel per slack, two in a row."""
    pictures = pictures_of(runs)
    figure, grid = moons_grid(-(-len(pictures) // 2), 2)
    for axes in grid.flat[len(pictures) :]:
        axes.set_visible(False)
    for axes, picture in zip(grid.flat, pictures, strict=False):
        draw_panel(axes, picture)
        slack = f"{picture.numbers.slack:.12f}".rstrip("0")
        axes.set_title(f"{loss_title('cll')}, slack {slack}", fontsize=TEXT)
    return save_moons(figure, path)


def soc_figure(runs: Sequence[Trial], places: Sequence[tuple[int, float] | None], path: Path) -> list[Path]:
    """Draw Figure D3: a row per γ, a column per depth; runs without such a place get a row below."""
    depths = sorted({place[0] for place in places if place})
    gammas = sorted({place[1] for place in places if place})
    figure, grid = moons_grid(len(gammas) + 1, max(len(depths), 1))
    others = iter(grid[-1])
    for picture, place in zip(pictures_of(runs), places, strict=True):
        axes = next(others) if place is None else grid[gammas.index(place[1]), depths.index(place[0])]
        draw_panel(axes, picture)
        if place is None:
            axes.set_title(loss_title(picture.numbers.loss), fontsize=TEXT)
    for axes in others:
        axes.axis("off")
    for axes, depth in zip(grid[0], depths, strict=False):
        axes.set_title(f"SOC, {depth} layers", fontsize=TEXT)
    for axes, gamma in zip(grid[:, 0], gammas, strict=False):
        axes.set_ylabel(f"$\\gamma = {gamma:g}$", fontsize=TEXT)
    return save_moons(figure, path)


def teaser_figure(runs: Sequence[Trial], path: Path) -> list[Path]:
    """Draw Figure 2: a lettered column per loss, with the classifier above and its outputs below."""
    pictures = pictures_of(runs)
    figure, grid = moons_grid(2, len(pictures), height_ratios=[1.25, 1])
    for letter, column, picture in zip(ascii_lowercase, grid.T, pictures, strict=False):
        draw_panel(column[0], picture)
        probability = _draw_outputs(column[1], picture)
        if picture is not pictures[-1]:
            probability.set_yticklabels([])
        name = loss_title(picture.numbers.loss)
        column[0].set_title(f"({letter}) {name}", fontsize=TEXT)
    probability.set_ylabel("probability of class 1", fontsize=SMALL)
    return save_moons(figure, path)


def moons_grid(rows: int, columns: int, **settings: Any) -> tuple[Figure, np.ndarray]:
    """Make panels in the shape of the moons, with room for a legend below."""
    width = max(PAGE_WIDTH / columns, 2.4)
    size = (width * columns, (0.61 * width + 0.35) * rows + 0.5)
    figure, grid = new_grid(rows, columns, size, **settings)
    for axes in grid.flat:
        axes.grid(visible=False)
    return figure, grid


def save_moons(figure: Figure, path: Path) -> list[Path]:
    """Add the legend and write the files."""
    draw_legend(figure)
    path.parent.mkdir(parents=True, exist_ok=True)
    return save_figure(figure, path)


def draw_legend(figure: Figure) -> None:
    """Draw one legend for all panels, below them."""
    handles = [
        Line2D([], [], color=CLASSES[0], marker="o", linestyle="", markersize=4, label="upper moon"),
        Line2D([], [], color=CLASSES[1], marker="o", linestyle="", markersize=4, label="lower moon"),
        Line2D([], [], color=WRONG, marker="o", linestyle="", markersize=4, label="wrong, or radius below ε"),
        Line2D([], [], color="black", label="decision boundary"),
        Line2D([], [], color=GREY, label="radius = ε, proved"),
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=3,
        fontsize=SMALL,
        frameon=False,
    )
