"""Diagrams as data: the numbers that their points stand for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from lipcert.recipes import read_recipe
from lipcert.report.charts import radius_chart, sweep_charts, training_charts
from lipcert.report.report_inputs import Finished
from lipcert.runs.metrics import Metrics, Validation
from lipcert.sweeps.summary import Combination
from tests.outcomes import validated


def finished(**parts: Any) -> Finished:
    return cast(Finished, SimpleNamespace(name="run", **{"recipe": read_recipe("moons-cll"), **parts}))


def test_a_point_of_the_radius_curve_is_the_share_certified_beyond_it() -> None:
    robust = torch.tensor([0.0, 0.0, 0.1, 0.2, 0.5])
    recipe = read_recipe("moons-cll", overrides=["certify.radii=[0.1, 0.25]"])
    chart = radius_chart([finished(samples=SimpleNamespace(robust=robust), recipe=recipe)])
    (line,) = chart.lines
    assert line.x[0] == 0.0
    assert line.y == [pytest.approx(20 * int((robust > x).sum()), abs=1e-3) for x in line.x]
    assert (line.y[0], line.y[-1]) == (60.0, 20.0)
    assert [radius for radius, _ in chart.marks] == [0.1, 0.25]


def test_accuracies_of_a_training_are_drawn_in_percent_and_losses_are_not() -> None:
    metrics = [
        Metrics(1, 4, loss=0.5, accuracy=0.6, k_f=3.0, seconds=1.0),
        Metrics(2, 8, 0.25, 0.7, 4.0, 2.0, validation=Validation(0.75, 0.5, 4.5)),
    ]
    charts = training_charts([finished(run=SimpleNamespace(metrics=lambda: metrics))])
    assert {chart.name: (chart.lines[0].x, chart.lines[0].y) for chart in charts} == {
        "training-loss": ([1, 2], [0.5, 0.25]),
        "training-clean": ([2], [75.0]),
        "training-cra": ([2], [50.0]),
        "training-constant": ([1, 2], [3.0, 4.0]),
    }
    assert [chart.name for chart in charts if chart.log_y] == ["training-constant"]


@pytest.mark.parametrize(
    ("values", "log"), [(("0.001", "1"), True), (("0.1", "1"), False), (("0", "9"), False)]
)
def test_a_sweep_over_decades_has_a_logarithmic_axis(values: tuple[str, str], log: bool) -> None:
    summary = [
        Combination({"loss.lam": value}, [validated({0.15: cra + d}, k_f=7.0) for d in (-0.01, 0.01)])
        for value, cra in zip(reversed(values), (0.25, 0.5), strict=True)
    ]
    accuracy, constant = sweep_charts("sweep", summary)
    assert (accuracy.log_x, constant.log_x, constant.log_y) == (log, log, True)
    _, line = accuracy.lines  # clean accuracy comes first
    assert line.x == [float(v) for v in values]
    assert line.y == pytest.approx([50.0, 25.0])
    assert line.spread == pytest.approx([2**0.5, 2**0.5])
    assert (constant.lines[0].y, constant.lines[0].spread) == ([7.0, 7.0], [0.0, 0.0])
