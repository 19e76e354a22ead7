"""Tightness: a witnessed lower bound, never above the proved one, resumable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from lipcert import InputError
from lipcert.bounds.witness import quotients, search
from lipcert.certificates.loading import load
from lipcert.errors import LipcertError
from lipcert.recipes import execute, read_recipe, tightness_search
from lipcert.recipes.tightness_search import measure_run
from lipcert.runs import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    path = tmp_path_factory.mktemp("tightness") / "run"
    return execute(read_recipe("moons-cll", budget="smoke"), path)


def test_a_linear_classifier_is_witnessed_exactly() -> None:
    model = nn.Linear(5, 3).double()
    x = torch.rand(2, 64, 5).double()
    found = search(model, x[0], x[1], steps=600, lr=1e-2)
    rows = model.weight.detach()
    truth = float(torch.cdist(rows, rows).max())
    assert 0.95 * truth <= found.lower <= truth * (1 + 1e-12)


def test_equal_points_are_no_witness() -> None:
    x = torch.rand(4, 5, requires_grad=True)
    values = quotients(nn.Linear(5, 3), x, x)
    assert (values == 0).all()
    values.sum().backward()
    assert torch.isfinite(x.grad).all()
    assert search(nn.Linear(5, 3), x[:1], x[:1], steps=3).lower == 0


def test_limits_are_kept() -> None:
    found = search(nn.Linear(5, 3), torch.rand(8, 5), torch.rand(8, 5), steps=50, lr=0.1, limits=(0.0, 1.0))
    for x in (found.x1, found.x2):
        assert 0 <= float(x.min()) <= float(x.max()) <= 1


def test_the_model_is_left_as_it_was() -> None:
    model = nn.Linear(5, 3)
    model.bias.requires_grad_(False)
    search(model, torch.rand(4, 5), torch.rand(4, 5), steps=2)
    assert model.weight.requires_grad
    assert not model.bias.requires_grad
    assert model.weight.grad is None


def test_the_saved_witness_is_a_witness(run: Run) -> None:
    found = measure_run(run, "smoke")
    assert 0 < found.lower <= found.upper
    saved = json.loads(run.tightness_file.read_text())
    x1, x2 = (torch.tensor(saved["witness"][k], dtype=torch.float64)[None] for k in ("x1", "x2"))
    f1, f2 = (load(run.path).double()(x)[0].detach() for x in (x1, x2))
    i, j = saved["witness"]["i"], saved["witness"]["j"]
    slope = float(((f1[j] - f1[i]) - (f2[j] - f2[i])).abs() / (x1 - x2).norm())
    assert slope == pytest.approx(saved["lower"], rel=1e-12)


def test_an_interrupted_search_goes_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tightness_search.BUDGETS, "smoke", tightness_search.Budget(40, 3, 1e-2))
    monkeypatch.setattr(tightness_search, "_PAIRS_AT_ONCE", 8)
    run.tightness_file.unlink(missing_ok=True)
    whole = measure_run(run, "smoke")
    run.tightness_file.unlink()
    real, calls = tightness_search.search, []

    def interrupted(*args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(tightness_search, "search", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measure_run(run, "smoke")
    assert json.loads(run.tightness_file.read_text())["batches"] == 2
    assert measure_run(run, "smoke") == whole
    assert len(calls) == 3 + 3  # the two finished batches are not repeated


def test_a_witness_above_the_proof_is_an_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.tightness_file.unlink(missing_ok=True)

    class TooLow:
        k_f = 1e-6

    monkeypatch.setattr(tightness_search, "certifier", lambda *a: TooLow())
    with pytest.raises(LipcertError, match="above the proved"):
        measure_run(run, "smoke")


def test_bad_input_is_named(run: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run directory"):
        measure_run(Run(tmp_path), "smoke")
    run.tightness_file.write_text("{")
    with pytest.raises(InputError, match="cut short"):
        measure_run(run, "smoke")
    run.tightness_file.unlink()
