"""Results of reproductions: what is written can be read, and what was written before still can."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lipcert.paper.results import Judgement, Results, claim_table
from lipcert.paper.verdict import Consistency, Verdict, Word
from lipcert.report.recorded import RecordedTable
from tests.outcomes import outcome

FILES = sorted((Path(__file__).parents[2] / "results").glob("*.json"))
ROWS = [path for path in FILES if "rows" in json.loads(path.read_text())]


@pytest.mark.parametrize("path", ROWS, ids=lambda path: path.stem)
def test_no_number_of_a_file_is_lost(path: Path) -> None:
    before = json.loads(path.read_text(encoding="utf-8"))
    after = json.loads(json.dumps(Results.read(path).to_json()))
    assert len(after["rows"]) == len(before["rows"]) > 0
    for old, new in zip(before.pop("rows"), after.pop("rows"), strict=True):
        assert {key: new.get(key) for key in old} == old
    # Claims had `holds` before; their texts stay, and each has a verdict now.
    kept = ("claim", "paper", "here")
    width = before.pop("width", None)  # three files have it instead of the size of the networks
    assert width is None or after["networks"] == f"width {width:g}"
    claims = [[{key: one[key] for key in kept} for one in each.pop("claims", [])] for each in (before, after)]
    assert claims[0] == claims[1]
    assert {key: after[key] for key in before} == before


@pytest.mark.parametrize("path", [p for p in FILES if p not in ROWS], ids=lambda path: path.stem)
def test_a_recorded_table_is_written_as_it_was_read(path: Path, tmp_path: Path) -> None:
    recorded = RecordedTable.read(path)
    assert recorded is not None
    assert recorded.table.cells == recorded.cells
    recorded.write(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(path.read_text(encoding="utf-8"))


def test_claims_and_failures_come_back(tmp_path: Path) -> None:
    claims = (
        Judgement("rises", "by 2", Verdict(Word.LEVEL, "by 1")),
        Judgement("falls", "", Verdict(Word.FAILS, "")),
        Judgement("is 1/σ", "", Consistency(True, "to 1 %")),
    )
    found = Results(
        "a", "b", (3, 5), (1, 2), "today", (outcome("CLL", 0.5),), claims, {"run": "why"}, "width 0.25"
    )
    assert Results.read(found.write(tmp_path / "results.json")) == found
    said = ["level within the seeds", "does not hold here", "true by definition"]
    assert [row[-1] for row in claim_table(claims).cells] == said


@pytest.mark.parametrize(("holds", "word"), [(True, Word.HOLDS), (False, Word.FAILS), (None, Word.LEVEL)])
def test_claims_of_earlier_files_are_read(holds: bool | None, word: Word) -> None:
    tree = {"claim": "rises", "paper": "by 2", "here": "by 1", "holds": holds}
    assert Judgement.from_json(tree).finding == Verdict(word, "by 1")


def test_what_was_run_is_said_beside_a_verdict() -> None:
    made = Results("fig-slack", "lipcert reproduce fig-slack --budget cpu", (6,), (1, 2), "2026-11-18", ())
    assert made.setting == "cpu budget, width 0.25, 6 epochs, seeds 1 and 2"
    assert (
        replace(made, networks="width 0.5", seeds=(4,)).setting == "cpu budget, width 0.5, 6 epochs, seed 4"
    )
    assert replace(made, command="lipcert reproduce fig-slack").budget == "full"


def test_results_older_than_a_definition_say_so() -> None:
    made = Results("moons-soc", "lipcert reproduce moons-soc", (1000,), (1,), "2026-11-17", ())
    assert "older settings: trained like moons-cll with Adam" in made.setting
    assert "older" not in replace(made, date="2026-11-18").setting
