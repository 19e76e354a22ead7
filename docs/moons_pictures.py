"""Draw what slack does on two moons, and the teaser: cross-entropy beside CLL."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from moons_networks import EPOCHS, with_cross_entropy, with_slack
from png import png

from lipcert.losses import calibrated_scale
from lipcert.report.figure import PAGE_WIDTH, SMALL, TEXT, new_grid, style, write_note
from lipcert.report.moons_figure import Picture, draw_boundary, draw_legend, draw_panel
from lipcert.report.palette import BLUE, CLASSES, GREY, INK, method_colour
from lipcert.tables.kinds import percent

# The slider of docs/choosing.md, from much to little.
SLACKS = (0.45, 0.375, 0.25, 0.125, 0.03, 0.005, 0.001)
EPS = 0.15

# Every so manyth point has its disc in the teaser.
_EVERY = 125


def draw_slacks() -> Iterator[tuple[str, bytes]]:
    """Yield one picture per slack: the classifier, and the logistic that it was trained with."""
    for i, slack in enumerate(SLACKS, 1):
        picture = with_slack(slack)
        figure, grid = new_grid(1, 2, (PAGE_WIDTH, 3.2), width_ratios=[1.5, 1])
        plane, probability = grid[0]
        plane.grid(visible=False)
        draw_panel(plane, picture)
        plane.set_title(f"CLL, slack {slack:g}, {EPOCHS} epochs", fontsize=TEXT)
        _draw_logistic(probability, slack)
        draw_legend(figure)
        yield f"slack-{i}", png(figure)


def _draw_logistic(axes: Axes, slack: float) -> None:
    distance = np.linspace(-0.4, 0.4, 401)
    sigma = float(calibrated_scale(EPS, slack))
    axes.axvspan(-EPS, EPS, color=GREY, alpha=0.15, linewidth=0)
    axes.plot(distance, 1 / (1 + np.exp(-distance / sigma)), color=BLUE, linewidth=1.8)
    axes.plot([-EPS, EPS], [slack, 1 - slack], "o", color=BLUE, markersize=4.5)
    axes.set_xticks([-EPS, 0, EPS], ["−ε", "0", "ε"])
    axes.set(
        xlabel="distance to the boundary [L2]", ylabel="probability", yticks=[0, 0.5, 1], ylim=(-0.05, 1.05)
    )
    axes.set_title(f"from {slack:g} to {1 - slack:g} across 2ε", fontsize=TEXT)


def draw_teaser() -> Iterator[tuple[str, bytes]]:
    """Yield the teaser: what is proved around points, and what is left of the accuracy at every radius."""
    pictures = {"Cross-entropy": with_cross_entropy(), "CLL": with_slack(SLACKS[-1])}
    figure = Figure(figsize=(PAGE_WIDTH, 5.2), layout="constrained")
    places = figure.subplot_mosaic([list(pictures), ["radii", "radii"]], height_ratios=[1.2, 1])
    for axes in places.values():
        style(axes)
    for name, picture in pictures.items():
        _draw_discs(places[name], picture)
        places[name].set_title(name, fontsize=TEXT + 2, color=method_colour(name), weight="bold")
    write_note(
        figure,
        f"same network, same {EPOCHS} epochs, 2,000 points; inside a disc no change can flip the class",
    )
    _draw_radii(places["radii"], pictures)
    yield "teaser", png(figure)


def _draw_discs(axes: Axes, picture: Picture) -> None:
    x, y = picture.data.x, picture.data.y
    axes.grid(visible=False)
    for label, colour in enumerate(CLASSES):
        mine = x[y == label]
        axes.scatter(mine[:, 0], mine[:, 1], s=2, color=colour, linewidths=0, alpha=0.5)
    draw_boundary(axes, picture)
    for i in range(_EVERY // 2, len(x), _EVERY):
        colour = CLASSES[int(y[i])]
        centre, radius = x[i].tolist(), float(picture.certificate.radius[i])
        axes.add_patch(Circle(centre, radius, fc=colour, ec=colour, alpha=0.3, linewidth=1))
        axes.scatter(*centre, s=10, color=colour, edgecolors=INK, linewidths=0.6, zorder=4)
    axes.spines[:].set_visible(True)
    correct = picture.certificate.prediction == y
    robust = float((correct & picture.certificate.at(EPS)).double().mean())
    words = f"{percent(float(correct.double().mean()))} correct, {percent(robust)} certified at {EPS}"
    axes.set_xlabel(words, fontsize=SMALL)


def _draw_radii(axes: Axes, pictures: dict[str, Picture]) -> None:
    radii = np.linspace(0, 0.42, 300)
    for name, picture in pictures.items():
        found = picture.certificate
        robust = torch.where(found.prediction == picture.data.y, found.radius, 0.0).numpy()
        share = np.array([100 * float((robust > radius).mean()) for radius in radii])
        colour = method_colour(name)
        axes.plot(radii, share, color=colour, linewidth=2)
        half = (radii[int((share < 60).argmax())], 60)
        axes.annotate(
            name, half, (9, 0), textcoords="offset points", color=colour, fontsize=TEXT, va="center"
        )
    axes.set(xlabel="radius [L2 distance]", ylabel="certified accuracy [%]")
    axes.set(xlim=(0, radii[-1]), ylim=(0, 103))
