"""The hours of full budgets that `lipcert list reproductions` shows are those of the results."""

from __future__ import annotations

import json
from pathlib import Path

from lipcert.paper import REPRODUCTIONS
from lipcert.paper.definition import FULL_COSTS
from lipcert.report.recorded import RecordedTable

RESULTS = Path(__file__).parents[2] / "results" / "gpu-hours.json"


def test_the_packaged_hours_are_those_of_the_results() -> None:
    cells = RecordedTable.read(RESULTS).cells
    assert json.loads(FULL_COSTS.read_text(encoding="utf-8")) == {row[0]: float(row[-1]) for row in cells}


def test_the_list_shows_them() -> None:
    assert (
        REPRODUCTIONS.create("table-cifar10")
        .cost("full")
        .endswith("epochs, about 100 hours of an A100 by an estimate, certificates not included")
    )
    assert "hours" not in REPRODUCTIONS.create("moons").cost("full")
