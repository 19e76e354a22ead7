"""Draw the pictures of docs/concepts.md: from the packaged moons-cll, the formulas, and results/*.json.

python docs/pictures.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import lipcert
from lipcert.losses import calibrated_scale
from lipcert.paper.results import Results
from lipcert.report.palette import BLUE, CLASSES, GREEN, GREY, ORANGE, RED, loss_title, method_colour

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
EPS = 0.15


def margin() -> Figure:
    """The classifier, its margin, and the discs in which a class is proved."""
    data = lipcert.data.load("moons")
    prover = lipcert.certifier(lipcert.load("moons-cll"), (2,))
    across, along = np.meshgrid(np.linspace(-1.35, 2.35, 480), np.linspace(-0.85, 1.35, 300))
    points = torch.from_numpy(np.stack([across.ravel(), along.ravel()], axis=1))
    logits = prover.logits(points)
    difference = (logits[:, 1] - logits[:, 0]).numpy().reshape(across.shape)
    width = EPS * float(prover.proved.pairs[0, 1])

    figure, axes = plt.subplots(figsize=(7.6, 4.6), layout="constrained")
    for label, colour in enumerate(CLASSES):
        mine = data.x[data.y == label]
        axes.scatter(mine[:, 0], mine[:, 1], s=3, color=colour, linewidths=0, alpha=0.55)
    axes.contour(across, along, difference, levels=[0], colors="black", linewidths=1.8)
    axes.contour(
        across, along, difference, levels=[-width, width], colors=GREY, linewidths=1.1, linestyles="solid"
    )
    chosen = data.x[[60, 330, 560, 860, 1130, 1420, 1640, 1920]]
    certificate = prover(chosen)
    for point, label, radius in zip(chosen, certificate.prediction, certificate.radius, strict=True):
        colour = CLASSES[int(label)]
        axes.add_patch(plt.Circle(point.tolist(), float(radius), fc=colour, ec=colour, alpha=0.22))
        axes.scatter(*point.tolist(), s=22, color=colour, edgecolors="white", linewidths=0.8, zorder=4)
    axes.plot([], [], color="black", linewidth=1.8, label="decision boundary")
    axes.plot([], [], color=GREY, linewidth=1.1, label=f"where the radius is {EPS}")
    axes.scatter([], [], s=140, color=GREY, alpha=0.4, label="certified disc of a point")
    axes.legend(loc="upper left", fontsize=8, framealpha=0.95)
    axes.set(xlim=(-1.35, 2.35), ylim=(-0.85, 1.35), aspect="equal", xticks=[], yticks=[])
    return figure


def constant() -> Figure:
    """A cone of slope K: it reaches 0 at the radius, whatever the scale of the logits."""
    prover = lipcert.certifier(lipcert.load("moons-cll"), (2,))
    here = torch.tensor([0.0, 1.0])
    t = np.linspace(-0.05, 0.42, 500)
    line = here + torch.from_numpy(t)[:, None] * torch.tensor([0.0, -1.0])
    logits = prover.logits(line)
    values = (logits[:, 0] - logits[:, 1]).numpy()
    start = float(np.interp(0.0, t, values))
    k = float(prover.proved.pairs[0, 1])
    radius = float(prover(here[None]).radius)

    figure, panels = plt.subplots(1, 2, figsize=(9.2, 3.6), layout="constrained")
    for axes, scale in zip(panels, (1, 10), strict=True):
        axes.fill_between(
            t, scale * (start - k * np.abs(t)), scale * (start + k * np.abs(t)), color=GREY, alpha=0.13, lw=0
        )
        axes.plot(t, scale * (start - k * np.abs(t)), color=GREY, linewidth=1.2)
        axes.plot(t, scale * values, color=CLASSES[0], linewidth=2)
        axes.axhline(0, color="black", linewidth=1)
        axes.plot([0], [scale * start], "o", color=CLASSES[0], markeredgecolor="white")
        arrow = {"arrowstyle": "<->", "color": RED, "shrinkA": 0, "shrinkB": 0}
        low = -0.28 * scale * start
        axes.annotate("", (radius, low), (0, low), arrowprops=arrow)
        axes.text(radius / 2, 1.2 * low, f"radius {radius:.2f}", color=RED, ha="center", va="top")
        axes.vlines([0, radius], low, [scale * start, 0], color=RED, linewidth=0.8, linestyles="dotted")
        title = f"K = {scale * k:.0f}" + (", head times 10" if scale > 1 else "")
        axes.set(title=title, xlabel="distance from (0, 1), downwards", xlim=(-0.05, 0.42))
        axes.set(ylim=(-0.75 * scale * start, 1.35 * scale * start))
        plain(axes)
    panels[0].set_ylabel("$f_0 - f_1$")
    return figure


def slack() -> Figure:
    """The calibrated logistic and the loss it makes, at several slacks."""
    d = np.linspace(-0.4, 0.4, 801)
    figure, (probability, loss) = plt.subplots(1, 2, figsize=(9.2, 3.6), layout="constrained")
    for p, colour in ((0.375, ORANGE), (0.125, GREEN), (0.005, BLUE), (5e-5, RED)):
        sigma = float(calibrated_scale(EPS, p))
        probability.plot(d, 1 / (1 + np.exp(-d / sigma)), color=colour, label=f"slack {named(p)}")
        probability.plot([-EPS, EPS], [p, 1 - p], "o", color=colour, markersize=4)
        loss.plot(d, np.logaddexp(0, (EPS - d) / sigma), color=colour, label=f"slack {named(p)}")
    for axes in (probability, loss):
        axes.axvspan(-EPS, EPS, color=GREY, alpha=0.13, linewidth=0)
        axes.set(xlim=(-0.4, 0.4), xlabel="distance from the boundary, (f$_y$ − f$_i$)/K")
        plain(axes)
    probability.set(title=r"probability $h(d/\sigma)$: from p to 1 − p across 2ε", yticks=[0, 0.5, 1])
    loss.set(title=r"loss, held to the margin: $\log(1 + e^{(\varepsilon - d)/\sigma})$", ylim=(0, 6))
    probability.legend(loc="upper left", fontsize=8, frameon=False)
    return figure


def large_constants() -> Figure:
    """What a margin asks of the constant, and what constants say of trained networks."""
    figure, (needed, measured) = plt.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
    eps = np.geomspace(0.02, 1, 100)
    for p, colour in ((0.375, ORANGE), (0.125, GREEN), (0.005, BLUE), (5e-5, RED)):
        needed.loglog(
            eps, 1 / (eps * float(calibrated_scale(1.0, p))), color=colour, label=f"slack {named(p)}"
        )
    needed.set(xlabel="ε", ylabel="$K_{hf} = 1/\\sigma$", title="the slope that a margin and a slack ask for")
    needed.legend(fontsize=8, frameon=False)
    shapes = {"Cross-entropy": "s", "SOC": "^", "GloRo": "D", "CLL": "o"}
    for method, shape in shapes.items():
        rows = [row for row in trained() if row[0] == method]
        title = {"SOC": "orthogonal (SOC)", "Cross-entropy": "cross-entropy"}.get(method, method)
        x, y = [k for _, k, _ in rows], [cra for *_, cra in rows]
        measured.scatter(x, y, color=method_colour(method), marker=shape, s=26, label=title)
    measured.set(xscale="log", xlabel="proved $K_f$", ylabel="CRA at 0.15 [%]", ylim=(-4, 104))
    measured.set_title("two moons: networks as they were trained")
    measured.legend(fontsize=8, frameon=False, loc="center left")
    for axes in (needed, measured):
        plain(axes)
    return figure


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


def plain(axes: Axes) -> None:
    """No frame where nothing is."""
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Write docs/images/concept-*.png."""
    plt.rcParams.update({"font.size": 10, "axes.titlesize": 10, "legend.handlelength": 1.6})
    for draw in (margin, constant, slack, large_constants):
        path = IMAGES / f"concept-{draw.__name__.replace('_', '-')}.png"
        draw().savefig(path, dpi=150, metadata={"Software": None})
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
