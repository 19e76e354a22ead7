"""Name curves at their right ends, in their colours: no legend is needed, and no name lies on another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from lipcert.report.figure import SMALL
from lipcert.report.mark_labels import spread

_GAP = 1.35 * SMALL  # points from one line of text to the next


@dataclass(frozen=True)
class EndLabel:
    """The name of a curve, and where the curve ends."""

    text: str
    colour: str
    x: float
    y: float


def label_ends(axes: Axes, labels: Sequence[EndLabel]) -> None:
    """Write the names to the right of the frame; the axes have their limits already."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # the layout decides how high the frame is
    height = 72 / figure.dpi * axes.get_window_extent().height
    ends = sorted(labels, key=lambda label: _height(axes, label))
    places = spread([min(max(_height(axes, label), 0.0), 1.0) for label in ends], _GAP / height)
    for label, place in zip(ends, places, strict=True):
        leader = {"arrowstyle": "-", "color": label.colour, "linewidth": 0.6, "alpha": 0.5}
        axes.annotate(
            label.text,
            xy=(label.x, label.y),
            xytext=(1.03, place),
            textcoords=axes.transAxes,
            fontsize=SMALL,
            color=label.colour,
            ha="left",
            va="center",
            arrowprops={**leader, "shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5)},
            annotation_clip=False,
        )


def _height(axes: Axes, label: EndLabel) -> float:
    """Return how high a curve ends, as a part of the frame."""
    return float(axes.transAxes.inverted().transform(axes.transData.transform((label.x, label.y)))[1])
