"""Curves over the seeds: nothing hidden, nothing on anything else, and axes that can be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from lipcert.report import figure as figures
from lipcert.report.hidden_curves import hidden_curves, joined
from lipcert.report.palette import method_colour
from lipcert.report.plotted_curve import Curve
from lipcert.report.seed_curves import Axis, Panel, PrintedCurve, draw_curves
from lipcert.tables.kinds import CONSTANT, PERCENT, Range
from tests.report.figure_texts import outside, touching


def curve(name: str, method: str, ys: list[float], xs: list[float], quantity: int = 0) -> Curve:
    return Curve(name, method, quantity, [(x, Range((y,))) for x, y in zip(xs, ys, strict=True)])


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are written, as they are before."""
    found: list[Figure] = []

    def keep(figure: Figure, path: Path, dpi: int = 200) -> Path:
        found.append(figure)
        return path

    monkeypatch.setattr(figures, "write_figure", keep)
    return found


XS = {
    "scales": ([0.125, 0.5, 2.0, 8.0], True),
    "crowded": ([0.005, 0.05, 0.15, 0.25, 0.4], False),
    "powers": ([1e-15, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1], True),
    "epochs": ([float(epoch) for epoch in range(1, 21)], False),
}


@pytest.mark.parametrize("name", XS)
def test_no_text_lies_on_another(name: str, kept: list[Figure]) -> None:
    xs, log = XS[name]
    falling = [0.6 - 0.01 * i for i in range(len(xs))]
    near = [y + 0.004 for y in falling]
    panels = [
        Panel("accuracy [%]", PERCENT, [curve("CLL", "CLL", falling, xs), curve("GloRo", "GloRo", near, xs)]),
        Panel(
            "constant K",
            CONSTANT,
            [curve("K_f", "CLL", [10**y for y in falling], xs), curve("K_hf", "CLL", near, xs, 1)],
            log=True,
        ),
    ]
    draw_curves(Axis("what varies [unit]", log), panels, "width 0.25, 6 epochs, " * 6, Path("figure"))
    figure = kept[0]
    assert touching(figure) == []
    assert outside(figure) == []
    inside = [x for x in figure.axes[0].get_xticks() if xs[0] <= x <= xs[-1]]
    assert len(inside) >= 3
    assert name != "epochs" or all(x == int(x) for x in inside)


def test_curves_are_named_in_the_colour_of_their_method(kept: list[Figure]) -> None:
    panel = Panel(
        "CRA [%]",
        PERCENT,
        [
            curve("CLL", "CLL", [0.5, 0.3], [0.15, 0.5]),
            curve("GloRo, ε logarithmic", "GloRo", [0.48], [0.15]),
        ],
        printed=[PrintedCurve("CLL", [(0.15, 60.0), (0.5, 40.0)])],
    )
    draw_curves(Axis("ε [L2 distance]"), [panel], "a note", Path("figure"))
    texts = {text.get_text(): text.get_color() for text in kept[0].findobj(Annotation)}
    assert texts["CLL"] == method_colour("CLL")
    assert texts["GloRo, ε logarithmic"] == method_colour("GloRo")
    assert "dotted: paper" in texts
    assert touching(kept[0]) == []


def test_equal_curves_of_a_method_are_one_with_both_names() -> None:
    xs = [0.15, 0.5]
    equal = [curve("GloRo K_f", "GloRo", [9.0, 3.0], xs), curve("GloRo K_hf", "GloRo", [9.0, 3.0], xs, 1)]
    other = curve("CLL K_f", "CLL", [9.0, 3.0], xs)
    assert [one.name for one in joined([*equal, other])] == ["GloRo K_f = K_hf", "CLL K_f"]


def test_a_curve_under_another_is_found() -> None:
    xs = [1.0, 2.0, 3.0]
    below, above, far = (
        curve(str(i), "CLL", ys, xs)
        for i, ys in enumerate(([0.5, 0.4, 0.1], [0.501, 0.4, 0.1], [0.9, 0.8, 0.7]))
    )
    assert hidden_curves([below, above, far], log=False) == [below]
    assert hidden_curves([above, far], log=False) == []
