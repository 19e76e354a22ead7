"""Draw the packages of lipcert for docs/architecture.md: imports point downwards.

python docs/packages_picture.py
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from lipcert.report.palette import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, TEAL

PATH = Path(__file__).parent / "images" / "packages.png"

# What a package holds, from the bottom to the top; a row may import itself and the rows below it.
ROWS = [
    (GREY, [("errors, types, registry, tables", "words that all packages share")]),
    (BLUE, [("bounds", "rules, tracing, fidelity, provers")]),
    (BLUE, [("nn", "layers with rules"), ("losses", "one paper per file"), ("models", "architectures")]),
    (GREEN, [("data", "data sets"), ("certificates", "proof to radius"), ("runs", "run directories")]),
    (
        TEAL,
        [
            ("train", "loop, stacks"),
            ("attack", "tries to refute"),
            ("export", "ONNX"),
            ("selftest", "devices"),
        ],
    ),
    (
        TEAL,
        [
            ("recipes", "YAML to result"),
            ("costs", "before a run"),
            ("sweeps", "many trainings"),
            ("estimator", "scikit-learn"),
        ],
    ),
    (
        PURPLE,
        [
            ("report", "tables, charts"),
            ("publishing", "for others"),
            ("paper", "claims"),
            ("laws", "what all obey"),
            ("explore", "a web page"),
        ],
    ),
    (ORANGE, [("commands", "one file per command; cli mounts them")]),
]
WIDTH, HEIGHT, GAP = 9.0, 0.62, 0.2


def draw_row(axes: Axes, level: int, colour: str, boxes: list[tuple[str, str]]) -> None:
    """Draw the boxes of one row, equally wide."""
    width = (WIDTH - GAP * (len(boxes) - 1)) / len(boxes)
    low = level * (HEIGHT + GAP)
    for i, (name, about) in enumerate(boxes):
        left = i * (width + GAP)
        style = "round,pad=0,rounding_size=0.08"
        axes.add_patch(
            FancyBboxPatch((left, low), width, HEIGHT, boxstyle=style, fc=f"{colour}22", ec=colour, lw=1.2)
        )
        middle = left + width / 2
        axes.text(middle, low + 0.40, name, ha="center", va="center", fontsize=11, weight="bold")
        axes.text(middle, low + 0.17, about, ha="center", va="center", fontsize=9, color=INK)


def main() -> None:
    """Write docs/images/packages.png."""
    top = len(ROWS) * (HEIGHT + GAP)
    figure = Figure(figsize=(8, 5.8), layout="constrained")
    axes = figure.subplots()
    for level, (colour, boxes) in enumerate(ROWS):
        draw_row(axes, level, colour, boxes)
    arrow = {"arrowstyle": "->", "color": INK, "lw": 1.4}
    axes.annotate("", (WIDTH + 0.35, 0.1), (WIDTH + 0.35, top - GAP - 0.1), arrowprops=arrow)
    axes.text(WIDTH + 0.5, top / 2, "imports", rotation=270, va="center", fontsize=10, color=INK)
    axes.set(xlim=(-0.1, WIDTH + 0.9), ylim=(-0.1, top))
    axes.axis("off")
    figure.savefig(PATH, dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    main()
