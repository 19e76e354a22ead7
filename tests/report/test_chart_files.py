"""Diagrams as pictures: no label lies on another, on a curve or outside."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from lipcert.report.chart_files import draw_chart
from lipcert.report.charts import Chart, Line
from lipcert.report.mark_labels import spread
from lipcert.report.palette import series_look

CLOSE = [0.01, 0.0141, 0.0142, 0.02, 0.05, 0.15, 0.199, 0.2]


def drawn(chart: Chart) -> Figure:
    figure = Figure(figsize=(4.6, 3.1), layout="constrained")
    FigureCanvasAgg(figure)
    draw_chart(figure.subplots(), chart)
    figure.canvas.draw()
    return figure


def chart_of(radii: list[float], across: str = "L2 radius", xs: tuple[float, ...] = (0.0, 0.1, 0.2)) -> Chart:
    line = Line("run", list(xs), [100.0 - 10 * i for i in range(len(xs))], series_look(0))
    marks = [(radius, f"{radius:g}") for radius in radii]
    return Chart("radius", "Accuracy", across, "certified [%]", [line], marks=marks)


def apart(boxes: list[Bbox]) -> bool:
    return not any(one.overlaps(other) for one, other in combinations(boxes, 2))


@pytest.mark.parametrize(
    "radii", [[0.1], CLOSE, [i / 1000 for i in range(200)]], ids=["one", "close", "many"]
)
def test_labels_of_radii_do_not_collide(radii: list[float]) -> None:
    figure = drawn(chart_of(radii))
    (axes,) = figure.axes
    labels = [child for child in axes.get_children() if isinstance(child, Annotation)]
    assert 1 <= len(labels) <= len(radii)
    assert len(labels) == len(radii) or len(radii) > 20
    texts = [Text.get_window_extent(label) for label in labels]  # without the lines that lead to them
    assert apart(texts)
    frame = axes.get_window_extent()
    assert all(box.y0 >= frame.y1 for box in texts)  # above the frame, where no curve is
    assert all(box.y1 <= figure.bbox.y1 and box.x0 >= 0 and box.x1 <= figure.bbox.x1 for box in texts)


@pytest.mark.parametrize(("across", "xs"), [("epoch", (1.0, 2.0, 3.0)), ("L2 radius", (0.0, 0.0975, 0.195))])
def test_numbers_of_an_axis_do_not_touch_and_epochs_are_whole(across: str, xs: tuple[float, ...]) -> None:
    figure = drawn(chart_of([], across, xs))
    (axes,) = figure.axes
    ticks = [tick for tick in axes.get_xticklabels() if tick.get_text()]
    assert apart([tick.get_window_extent().expanded(1.1, 1) for tick in ticks])
    low, high = axes.get_xlim()
    inside = [x for x in axes.get_xticks() if low <= x <= high]
    assert len(inside) >= 3
    assert across != "epoch" or all(x == int(x) for x in inside)


def test_places_move_as_little_as_it_takes_and_stay_inside() -> None:
    assert spread([], 0.1) == []
    assert spread([0.1, 0.5], 0.1) == [0.1, 0.5]
    assert spread([0.0, 0.0, 0.0], 0.1) == pytest.approx([0.0, 0.1, 0.2])
    assert spread([0.9, 1.0, 1.0], 0.1) == pytest.approx([0.8, 0.9, 1.0])
    found = spread([0.3, 0.31, 0.32, 0.36, 0.8], 0.05)
    assert all(b - a >= 0.05 - 1e-8 for a, b in pairwise(found))
    assert found[-1] == 0.8
