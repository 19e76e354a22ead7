"""The texts of a figure as boxes, to see that none lies on another or outside."""

from __future__ import annotations

from itertools import combinations

from matplotlib.axis import XAxis, YAxis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def text_boxes(figure: Figure) -> dict[str, Bbox]:
    """Every text that is seen, with its box; texts that occur twice are numbered."""
    FigureCanvasAgg(figure)
    figure.canvas.draw()
    found: dict[str, Bbox] = {}
    unseen = _unseen(figure)
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        shown = text.get_text().strip()
        box = Text.get_window_extent(text)  # without the line of an annotation
        if shown and text.get_visible() and id(text) not in unseen and box.width > 0:
            found[f"{shown} #{len(found)}"] = box
    return found


def _unseen(figure: Figure) -> set[int]:
    """What is not drawn: numbers of an axis beyond its ends, those kept for later, and hidden diagrams."""
    found: set[int] = set()
    for axes in figure.axes:
        if not axes.get_visible():
            found |= {id(text) for text in axes.findobj(Text)}
        for axis in (axes.xaxis, axes.yaxis):
            seen = [axis.label, *_numbers(axis)]
            found |= {id(text) for text in axis.findobj(Text)} - {id(text) for text in seen}
    return found


def _numbers(axis: XAxis | YAxis) -> list[Text]:
    """The numbers within the ends of an axis."""
    low, high = sorted(axis.get_view_interval())
    low, high = low - 1e-9 * abs(low), high + 1e-9 * abs(high)
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return [tick.label1 for tick in ticks if low <= tick.get_loc() <= high]


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
