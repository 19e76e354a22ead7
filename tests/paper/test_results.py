"""Results of reproductions: what is written can be read, and what was written before still can."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lipcert.paper.results import Judgement, Results, claim_table
from lipcert.report.recorded import RecordedTable
from tests.outcomes import outcome

FILES = sorted((Path(__file__).parents[2] / "results").glob("*.json"))
ROWS = [path for path in FILES if "rows" in json.loads(path.read_text())]


@pytest.mark.parametrize("path", ROWS, ids=lambda path: path.stem)
def test_no_number_of_a_file_is_lost(path: Path) -> None:
    before = json.loads(path.read_text())
    after = json.loads(json.dumps(Results.read(path).to_json()))
    assert len(after["rows"]) == len(before["rows"]) > 0
    for old, new in zip(before.pop("rows"), after.pop("rows"), strict=True):
        assert {key: new.get(key) for key in old} == old
    assert {key: after[key] for key in before} == before


@pytest.mark.parametrize("path", [p for p in FILES if p not in ROWS], ids=lambda path: path.stem)
def test_a_recorded_table_is_written_as_it_was_read(path: Path, tmp_path: Path) -> None:
    recorded = RecordedTable.read(path)
    assert recorded is not None
    assert recorded.table.cells == recorded.cells
    recorded.write(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(path.read_text())


def test_claims_and_failures_come_back(tmp_path: Path) -> None:
    claims = (Judgement("rises", "by 2", "by 1", None), Judgement("falls", "", "", False))
    found = Results("a", "b", 3, (1, 2), "today", (outcome("CLL", 0.5),), claims, {"run": "why"})
    assert Results.read(found.write(tmp_path / "results.json")) == found
    assert [row[-1] for row in claim_table(claims).cells] == ["open: within the spread of the seeds", "no"]
