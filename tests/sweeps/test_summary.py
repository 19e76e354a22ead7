"""A sweep summed up: means and spreads over seeds, and the best combination."""

from __future__ import annotations

from pathlib import Path

import pytest

from lipcert.runs.measures import cra
from lipcert.sweeps.findings import SweepRow
from lipcert.sweeps.summary import best_of, over_seeds
from tests.outcomes import validated

CRA = cra("val", 0.15)
ROWS = [
    SweepRow({"loss.eps": eps, "seed": seed}, Path("a"), None if found is None else validated({0.15: found}))
    for eps, seed, found in [
        ("0.1", "1", 0.5),
        ("0.1", "2", 0.7),
        ("0.2", "1", 0.9),
        ("0.2", "2", None),
        ("0.3", "1", 0.1),
    ]
]


def test_seeds_give_a_mean_and_the_standard_deviation_of_a_sample() -> None:
    summary = over_seeds(ROWS)
    assert [(row.values, len(row.runs)) for row in summary] == [
        ({"loss.eps": eps}, count) for eps, count in (("0.1", 2), ("0.2", 1), ("0.3", 1))
    ]
    both, alone = CRA.deviation(summary[0].runs), CRA.deviation(summary[1].runs)
    assert both is not None
    assert both.mean == pytest.approx(0.6)
    assert both.deviation == pytest.approx(0.02**0.5)  # (0.1² + 0.1²) / (2 − 1)
    assert alone is not None
    assert (alone.mean, alone.deviation) == (0.9, None)
    assert best_of(summary) is summary[1]
    assert best_of([]) is None
