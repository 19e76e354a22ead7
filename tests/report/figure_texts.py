"""The texts of a figure as boxes, to see that none lies on another or outside."""

from __future__ import annotations

from itertools import combinations

from matplotlib.axis import Axis, Tick
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def text_boxes(figure: Figure) -> dict[str, Bbox]:
    """Every text that is seen, with its box; texts that occur twice are numbered."""
    FigureCanvasAgg(figure)
    figure.canvas.draw()
    found: dict[str, Bbox] = {}
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        shown = text.get_text().strip()
        box = Text.get_window_extent(text)  # without the line of an annotation
        if shown and _is_seen(text) and box.width > 0:
            found[f"{shown} #{len(found)}"] = box
    return found


def _is_seen(text: Text) -> bool:
    """Whether it is drawn: numbers of an axis beyond its ends are not."""
    axes = text.axes
    if axes is None or not (text.get_visible() and axes.get_visible()):
        return text.get_visible() and axes is None
    frame, box = axes.get_window_extent().padded(2), Text.get_window_extent(text)
    if any(text in (tick.label1, tick.label2) for tick in _ticks(axes.xaxis)):
        return bool(frame.x0 <= (box.x0 + box.x1) / 2 <= frame.x1)
    if any(text in (tick.label1, tick.label2) for tick in _ticks(axes.yaxis)):
        return bool(frame.y0 <= (box.y0 + box.y1) / 2 <= frame.y1)
    return True


def _ticks(axis: Axis) -> list[Tick]:
    return [*axis.get_major_ticks(), *axis.get_minor_ticks()]


def touching(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts that lie on each other."""
    boxes = text_boxes(figure)
    return [(a, b) for a, b in combinations(boxes, 2) if boxes[a].overlaps(boxes[b])]


def outside(figure: Figure) -> list[str]:
    """Texts that the edge of the figure cuts."""
    frame = figure.bbox.padded(1)
    return [
        name
        for name, box in text_boxes(figure).items()
        if not (frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1)
    ]
