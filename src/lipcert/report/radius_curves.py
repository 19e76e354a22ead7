"""Draw accuracy at the radii of certificates, one curve per model, each named where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from matplotlib.axes import Axes

from lipcert.report.axis_numbers import have_room
from lipcert.report.end_labels import EndLabel, label_ends
from lipcert.report.palette import LINES, MARK_SIGNS, MARKS, method_colour, run_looks
from lipcert.tables.kinds import printed_radius

# The least distance between two radii with a number, as a part of the axis of a figure across the page.
_GAP = 0.1


@dataclass(frozen=True)
class RadiusCurve:
    """Radii and accuracies in percent; at radius 0 it is the clean accuracy."""

    name: str
    method: str  # gives the colour
    points: Sequence[tuple[float, float]]


def draw_radius_curves(axes: Axes, curves: Sequence[RadiusCurve]) -> None:
    """Draw the curves, and number the axis by the radii of the certificates where they have room."""
    ends = []
    looks = run_looks([curve.method for curve in curves])
    marks = cycle(zip(MARKS, MARK_SIGNS, strict=True))
    for curve, look, (mark, sign) in zip(curves, looks, marks, strict=False):
        x, y = zip(*curve.points, strict=True)
        line: dict[str, Any] = {"color": look.colour, "linestyle": LINES[look.dash], "linewidth": 1.6}
        axes.plot(x, y, marker=mark, markersize=5, **line)
        ends.append(EndLabel(f"{sign} {curve.name}", method_colour(curve.method), x[-1], y[-1]))
    radii = sorted({radius for curve in curves for radius, _ in curve.points})
    if have_room(radii, log=False, gap=_GAP):
        axes.set_xticks(radii, [printed_radius(radius) if radius else "clean" for radius in radii])
    axes.set(xlabel="radius [L2 distance]", ylabel="certified accuracy [%]", ylim=(0, None))
    label_ends(axes, ends)
