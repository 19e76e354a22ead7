"""Label the vertical lines of a diagram above its frame, so that no label lies on another or on a curve."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from lipcert.report.palette import GREY, INK

_POINTS = 7  # the size of the letters
_GAP = 1.4 * _POINTS  # from one label to the next
_RISE = 9.0  # the length of the line from the frame up to the label


def draw_marks(axes: Axes, marks: Sequence[tuple[float, str]]) -> None:
    """Draw vertical lines with their labels above the frame; the axes have their limits already."""
    if not marks:
        return
    for x, _ in marks:
        axes.axvline(x, color=GREY, linewidth=0.5)
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # the layout decides how wide the frame is
    frame = axes.get_window_extent()
    width, height = (72 / figure.dpi * side for side in (frame.width, frame.height))
    shown = _thinned(sorted(marks), int(width / _GAP))
    lines = [
        float(axes.transAxes.inverted().transform(axes.transData.transform((x, 0)))[0]) for x, _ in shown
    ]
    for (x, text), place in zip(shown, spread(lines, _GAP / width), strict=True):
        axes.annotate(
            text,
            xy=(x, 1.0),
            xycoords=axes.get_xaxis_transform(),
            xytext=(place, 1.0 + _RISE / height),
            textcoords=axes.transAxes,
            fontsize=_POINTS,
            color=INK,
            rotation=90,
            ha="center",
            va="bottom",
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0},
        )


def _thinned(marks: Sequence[tuple[float, str]], most: int) -> list[tuple[float, str]]:
    """Keep every second mark, or every third and so on, until there is room for the labels."""
    return list(marks[:: max(-(-len(marks) // max(most, 1)), 1)])


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Move ascending places between 0 and 1 apart, as little as it takes, until neighbours differ by `gap`.

    Example:
        >>> spread([0.2, 0.5, 0.51], 0.1)
        [0.2, 0.455, 0.555]
    """
    groups = [([place], place) for place in places]  # places that touch, and the centre of each group
    i = 0
    while i + 1 < len(groups):
        (left, a), (right, b) = groups[i], groups[i + 1]
        if b - a >= gap * (len(left) + len(right)) / 2 - 1e-9:
            i += 1
            continue
        both = [*left, *right]
        groups[i : i + 2] = [(both, _inside(sum(both) / len(both), gap * (len(both) - 1) / 2))]
        i = max(i - 1, 0)
    return [
        round(centre + gap * (k - (len(members) - 1) / 2), 9)
        for members, centre in groups
        for k in range(len(members))
    ]


def _inside(centre: float, half: float) -> float:
    """Keep a group between 0 and 1."""
    return min(max(centre, half), max(1.0 - half, half))
