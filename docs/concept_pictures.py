"""Draw the pictures of docs/concepts.md: from the packaged moons-cll, the formulas, and results/*.json."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from png import png

import lipcert
from lipcert.losses import calibrated_scale
from lipcert.paper.results import Results
from lipcert.report.end_labels import EndLabel, label_ends
from lipcert.report.figure import PAGE_WIDTH, SMALL, TEXT, new_figure, new_grid
from lipcert.report.palette import BLUE, CLASSES, GREY, INK, loss_title, method_colour, shades

ROOT = Path(__file__).parents[1]
EPS = 0.15
SLACKS = (0.375, 0.125, 0.005, 5e-5)

# Where the loss of each slack has room for its name.
NAMES = {0.375: (-0.39, 2.1), 0.125: (-0.22, 5.25), 0.005: (0.01, 4.4), 5e-5: (0.085, 5.2)}


def draw() -> Iterator[tuple[str, bytes]]:
    """Yield the name of each picture and its content."""
    for make in (margin, constant, slack, large_constants):
        yield f"concept-{make.__name__.replace('_', '-')}", png(make())


def margin() -> Figure:
    """Draw the classifier, its margin, and the discs in which a class is proved."""
    data = lipcert.data.load("moons")
    prover = lipcert.certifier(lipcert.load("moons-cll"), (2,))
    across, along = np.meshgrid(np.linspace(-1.35, 2.35, 480), np.linspace(-0.85, 1.35, 300))
    points = torch.from_numpy(np.stack([across.ravel(), along.ravel()], axis=1))
    logits = prover.logits(points)
    difference = (logits[:, 1] - logits[:, 0]).numpy().reshape(across.shape)
    width = EPS * float(prover.proved.pairs[0, 1])

    figure, axes = new_figure((PAGE_WIDTH, 4.4))
    for label, colour in enumerate(CLASSES):
        mine = data.x[data.y == label]
        axes.scatter(mine[:, 0], mine[:, 1], s=3, color=colour, linewidths=0, alpha=0.55)
    axes.contour(across, along, difference, levels=[0], colors=INK, linewidths=2)
    edges = {"levels": [-width, width], "colors": GREY, "linewidths": 1.1, "linestyles": "solid"}
    axes.contour(across, along, difference, **edges)
    chosen = data.x[[60, 330, 560, 860, 1130, 1420, 1640, 1920]]
    certificate = prover(chosen)
    for point, label, radius in zip(chosen, certificate.prediction, certificate.radius, strict=True):
        colour = CLASSES[int(label)]
        axes.add_patch(Circle(point.tolist(), float(radius), fc=colour, ec=colour, alpha=0.22))
        axes.scatter(*point.tolist(), s=22, color=colour, edgecolors="w", linewidths=0.8, zorder=4)
    axes.set(xlim=(-1.35, 2.35), ylim=(-0.85, 1.35), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    axes.plot([], [], color=INK, linewidth=2, label="decision boundary")
    axes.plot([], [], color=GREY, linewidth=1.1, label=f"radius {EPS}")
    axes.scatter([], [], s=140, color=GREY, alpha=0.4, label="certified disc")
    axes.legend(loc="lower left", bbox_to_anchor=(0.25, 0.01), fontsize=SMALL, frameon=False)
    return figure


def constant() -> Figure:
    """Draw a cone of slope K: it reaches 0 at the radius, whatever the scale of the logits."""
    prover = lipcert.certifier(lipcert.load("moons-cll"), (2,))
    here = torch.tensor([0.0, 1.0])
    t = np.linspace(-0.05, 0.42, 500)
    line = here + torch.from_numpy(t)[:, None] * torch.tensor([0.0, -1.0])
    logits = prover.logits(line)
    values = (logits[:, 0] - logits[:, 1]).numpy()
    k, radius = float(prover.proved.pairs[0, 1]), float(prover(here[None]).radius)
    figure, grid = new_grid(1, 2, (PAGE_WIDTH, 3.3))
    for axes, scale in zip(grid[0], (1, 10), strict=True):
        draw_cone(axes, t, scale * values, scale * k, radius)
        axes.set_title(f"K = {scale * k:.0f}" + (", head times 10" if scale > 1 else ""), fontsize=TEXT)
    grid[0][0].set_ylabel("$f_0 - f_1$ [logits]")
    return figure


def draw_cone(axes: Axes, t: np.ndarray, values: np.ndarray, k: float, radius: float) -> None:
    """Draw the difference of two logits along a line, the cone that it cannot leave, and the radius."""
    start = float(np.interp(0.0, t, values))
    axes.fill_between(t, start - k * np.abs(t), start + k * np.abs(t), color=GREY, alpha=0.13, lw=0)
    axes.plot(t, start - k * np.abs(t), color=GREY, linewidth=1.2)
    axes.plot(t, values, color=CLASSES[0], linewidth=2)
    axes.axhline(0, color=INK, linewidth=1)
    axes.plot([0], [start], "o", color=CLASSES[0], markeredgecolor="w")
    low = -0.28 * start
    axes.annotate(
        "",
        (radius, low),
        (0, low),
        arrowprops={"arrowstyle": "<->", "color": INK, "shrinkA": 0, "shrinkB": 0},
    )
    axes.text(radius / 2, 1.2 * low, f"radius {radius:.2f}", color=INK, ha="center", va="top", fontsize=TEXT)
    axes.vlines([0, radius], low, [start, 0], color=INK, linewidth=0.8, linestyles="dotted")
    axes.text(0.39, 0.95 * start, "cone of slope K", color=GREY, ha="right", fontsize=SMALL)
    axes.set(xlabel="distance from (0, 1), downwards [L2]", xlim=(-0.05, 0.42))
    axes.set(ylim=(-0.75 * start, 1.35 * start))


def slack() -> Figure:
    """Draw the calibrated logistic and the loss it makes, at several slacks."""
    d = np.linspace(-0.4, 0.4, 801)
    figure, grid = new_grid(1, 2, (PAGE_WIDTH, 3.4))
    probability, loss = grid[0]
    for p, colour in zip(SLACKS, shades(BLUE, len(SLACKS)), strict=True):
        sigma = float(calibrated_scale(EPS, p))
        probability.plot(d, 1 / (1 + np.exp(-d / sigma)), color=colour, linewidth=1.8)
        probability.plot([-EPS, EPS], [p, 1 - p], "o", color=colour, markersize=4)
        loss.plot(d, np.logaddexp(0, (EPS - d) / sigma), color=colour, linewidth=1.8)
    for axes in (probability, loss):
        axes.axvspan(-EPS, EPS, color=GREY, alpha=0.13, linewidth=0)
        axes.set(xlim=(-0.4, 0.4), xlabel="distance (f$_y$ − f$_i$)/K to the boundary [L2]")
        axes.set_xticks([-0.3, -EPS, 0, EPS, 0.3], ["−0.3", "−ε", "0", "ε", "0.3"])
    for p, (x, y) in NAMES.items():
        loss.text(x, y, f"p = {named(p)}", fontsize=SMALL, color=INK, ha="right" if p == 0.005 else "left")
    probability.set(ylabel="probability", yticks=[0, 0.5, 1])
    probability.set_title("from slack p to 1 − p across 2ε", fontsize=TEXT)
    loss.set(ylabel="loss [nats]", ylim=(0, 6))
    return figure


def large_constants() -> Figure:
    """Draw what a margin asks of the constant, and what constants say of trained networks."""
    figure, grid = new_grid(2, 1, (PAGE_WIDTH, 6.0))
    (needed,), (measured,) = grid
    eps = np.geomspace(0.02, 1, 100)
    ends = []
    for p, colour in zip(SLACKS, shades(BLUE, len(SLACKS)), strict=True):
        slope = np.array([1 / (e * float(calibrated_scale(1.0, p))) for e in eps])
        needed.loglog(eps, slope, color=colour, linewidth=1.8)
        ends.append(EndLabel(f"slack {named(p)}", INK, 1.0, float(slope[-1])))
    needed.set_xticks([0.02, 0.05, 0.1, 0.2, 0.5, 1], ["0.02", "0.05", "0.1", "0.2", "0.5", "1"])
    needed.minorticks_off()
    needed.set(xlabel="ε [L2 distance]", ylabel="$K_{hf} = 1/\\sigma$ [per L2 distance]")
    needed.set_title("the slope that a margin and a slack ask for", fontsize=TEXT)
    label_ends(needed, ends)
    draw_trained(measured)
    return figure


def draw_trained(axes: Axes) -> None:
    """Draw certified accuracy against the proved constant, one mark per network."""
    shapes = {"Cross-entropy": "s", "SOC": "^", "GloRo": "D", "CLL": "o"}
    for method, shape in shapes.items():
        rows = [row for row in trained() if row[0] == method]
        title = {"SOC": "orthogonal (SOC)", "Cross-entropy": "cross-entropy"}.get(method, method)
        x, y = [k for _, k, _ in rows], [cra for *_, cra in rows]
        colour = method_colour(method)
        axes.scatter(x, y, color=colour, marker=shape, s=30, zorder=3 if method == "CLL" else 4, alpha=0.8)
        at = (min(x), y[x.index(min(x))])
        place, side = {"SOC": ((16, 0), "left"), "GloRo": ((0, -13), "center")}.get(
            method, ((-8, 0), "right")
        )
        words = {"color": colour, "fontsize": SMALL, "ha": side, "va": "center"}
        axes.annotate(title, at, place, textcoords="offset points", **words)
    axes.set(xscale="log", xlabel="proved $K_f$ [per L2 distance]", ylabel="CRA at 0.15 [%]", ylim=(-6, 108))
    axes.set_xticks([2, 10, 100, 1000], ["2", "10", "100", "1000"])
    axes.minorticks_off()
    axes.set_title("two moons: networks as they were trained", fontsize=TEXT)


def trained() -> list[tuple[str, float, float]]:
    """Method, K_f and certified accuracy (validation points) of the runs in results/ at ε = 0.15."""
    found = []
    for name in ("moons-teaser", "moons", "moons-slack", "moons-soc"):
        for run in (outcome.run for outcome in Results.read(ROOT / "results" / f"{name}.json").outcomes):
            if run.eps == EPS:
                method = "SOC" if "soc" in run.recipe else loss_title(run.loss)
                found.append((method, run.k_f, 100 * run.splits["val"].cra))
    return found


def named(p: float) -> str:
    """Without an exponent."""
    return f"{p:.5f}".rstrip("0")
