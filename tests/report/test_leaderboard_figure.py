"""The picture of the leaderboard: every packaged model, with the numbers of its certificate."""

from __future__ import annotations

from dataclasses import replace

from lipcert.models.trained import trained_models
from lipcert.report.leaderboard import Entry, leaderboard
from lipcert.report.leaderboard_figure import leaderboard_figure, leaderboard_words
from lipcert.report.palette import method_colour
from tests.report.figure_texts import outside, text_boxes, touching

ENTRY = Entry(
    name="cifar10-a",
    data="cifar10",
    method="CLL",
    parameters=1,
    seconds=None,
    threads=None,
    clean=0.7,
    certified={36 / 255: 0.55, 72 / 255: 0.42, 108 / 255: 0.3, 1.0: 0.03},
    tightness=None,
    command="",
)


def test_every_packaged_model_is_in_the_picture_and_in_its_words() -> None:
    board = leaderboard()
    texts = " ".join(text_boxes(leaderboard_figure(board)))
    words = leaderboard_words(board)
    for name in trained_models():
        assert name.partition("-")[2] in texts
        assert f"{name}: " in words


def test_names_of_many_alike_models_do_not_touch() -> None:
    entries = [
        replace(ENTRY, name=f"cifar10-model-{i}", method=method, clean=0.7 - 0.002 * i)
        for i, method in enumerate(("CLL", "GloRo", "CLL", "EMMA", "LMT", "CLL", "AOL", "SOC"))
    ]
    single = replace(ENTRY, name="moons-a", data="moons", certified={0.15: 0.999})
    figure = leaderboard_figure({"cifar10": entries, "moons": [single]})
    assert touching(figure) == []
    assert outside(figure) == []
    (axes,) = figure.axes
    colours = {line.get_color() for line in axes.lines}
    assert {method_colour(method) for method in ("CLL", "GloRo", "EMMA", "LMT", "AOL", "SOC")} <= colours
    assert any("moons-a: 99.9 % at 0.15" in text for text in text_boxes(figure))
