"""What a sweep found: means and spreads over seeds, the best row, and how numbers are printed."""

from __future__ import annotations

import pytest

from lipcert.runs.rows import Row
from lipcert.sweeps.findings import best_of, cell, over_seeds

ROWS: list[Row] = [
    {"loss.eps": eps, "seed": seed, "val CRA 0.15": cra, "K_f": 2.0, "run": "a", "status": status}
    for eps, seed, cra, status in [
        ("0.1", "1", 0.5, "finished"),
        ("0.1", "2", 0.7, "finished"),
        ("0.2", "1", 0.9, "finished"),
        ("0.2", "2", 0.0, "the loss became nan"),
        ("0.3", "1", 0.1, "finished"),
    ]
]


def test_seeds_give_a_mean_and_the_standard_deviation_of_a_sample() -> None:
    summary = over_seeds(ROWS, ["loss.eps", "seed"])
    assert [(row["loss.eps"], row["trainings"]) for row in summary] == [("0.1", 2), ("0.2", 1), ("0.3", 1)]
    mean, spread = summary[0]["val CRA 0.15"]
    assert mean == pytest.approx(0.6)
    assert spread == pytest.approx(0.02**0.5)  # (0.1² + 0.1²) / (2 − 1)
    assert summary[1]["val CRA 0.15"] == (0.9, None)
    assert best_of(summary) is summary[1]
    assert best_of([{"loss.eps": "0.1", "trainings": 1}]) is None


@pytest.mark.parametrize(
    ("title", "value", "printed"),
    [
        ("val CRA 0.15", (0.614, None), "61.4"),
        ("test clean", (0.614, 0.012), "61.4 ± 1.2"),
        ("tightness", (0.5, None), "50.0"),
        ("K_f", (12.34, None), "12.3"),
        ("K_f", (12.34, 0.56), "12.3 ± 0.6"),
        ("K_f", None, "–"),
    ],
)
def test_accuracies_are_printed_in_percent_and_constants_are_not(
    title: str, value: object, printed: str
) -> None:
    assert cell(title, value) == printed
