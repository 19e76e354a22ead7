"""Commands print upper bounds rounded up and lower bounds rounded down."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from torch import nn
from typer.testing import CliRunner

from lipcert.cli import app
from lipcert.commands.work import export_model as exporting
from lipcert.commands.work.inspection import inspection_table
from lipcert.recipes import tightness_search

ABOVE_TWO = 2.0000001


def test_inspect_states_no_less_than_was_proved() -> None:
    linear = nn.Linear(1, 1, bias=False)
    nn.init.constant_(linear.weight, ABOVE_TWO)
    assert f"{linear.weight.item():.6g}" == "2"
    table = inspection_table(nn.Sequential(linear), (1,))
    assert "K ≤ 2.00001, proved" in table.title
    (row,) = (dict(zip(table.titles, cells, strict=True)) for cells in table.cells)
    assert (row["estimate"], row["proved"]) == ("2", "2.00001")


def test_tightness_prints_both_bounds_on_their_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = SimpleNamespace(
        lower=1.9999999, upper=ABOVE_TWO, tightness=0.9999999, pairs=1, searched=1, steps=1
    )
    monkeypatch.setattr(tightness_search, "measure_run", lambda run, budget, **options: found)
    said = CliRunner().invoke(app, ["tightness", str(tmp_path)]).output
    assert "1.99999 (witnessed) ≤ K_f ≤ 2.00001 (proved)" in said


def test_export_states_no_less_than_was_proved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(exporting, "export_onnx", lambda *args, **kwargs: None)
    monkeypatch.setattr(exporting, "certifier", lambda *args: SimpleNamespace(k_f=ABOVE_TWO))
    (line,) = exporting.export_model("moons-cll", tmp_path / "moons.onnx", False, "auto")
    assert line.endswith("K_f ≤ 2.00001 (proved)")
