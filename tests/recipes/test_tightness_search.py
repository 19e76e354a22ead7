"""Tightness: a witnessed lower bound, never above the proved one, resumable."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import torch
from torch import nn

from lipcert import InputError
from lipcert.bounds.witness import quotients, search
from lipcert.certificates.loading import load
from lipcert.certificates.shards import Shard
from lipcert.errors import LipcertError
from lipcert.recipes import execute, read_recipe, tightness_search
from lipcert.recipes.tightness_search import BUDGETS, Budget, measure_run
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
    monkeypatch.setattr(tightness_search, "PAIRS_AT_ONCE", 8)
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

    monkeypatch.setattr(tightness_search, "Certifier", lambda *a: TooLow())
    with pytest.raises(LipcertError, match="above the proved"):
        measure_run(run, "smoke")


def test_bad_input_is_named(run: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run directory"):
        measure_run(Run(tmp_path), "smoke")
    run.tightness_file.write_text("{")
    with pytest.raises(InputError, match="cut short"):
        measure_run(run, "smoke")
    run.tightness_file.unlink()


def test_a_search_ends_when_its_time_is_over_and_goes_on_later(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.tightness_file.unlink(missing_ok=True)
    clock = iter(range(10_000))
    with monkeypatch.context() as patched:
        patched.setattr(tightness_search.time, "monotonic", lambda: float(next(clock)))
        cut = measure_run(run, "cpu", minutes=0.5)  # seconds pass with every look at the clock
    assert cut.searched == 0
    assert 0 < cut.lower <= cut.upper
    assert run.tightness() == cut
    whole = measure_run(run, "cpu")
    assert whole.searched == whole.pairs
    run.tightness_file.unlink()
    assert measure_run(run, "cpu").lower == max(whole.lower, cut.lower)


def test_time_is_a_positive_number(run: Run) -> None:
    with pytest.raises(InputError, match="--minutes: expected a number > 0"):
        measure_run(run, "smoke", minutes=0)


def test_processes_share_the_pairs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes as threads: they search other batches, and both get the best witness of all."""
    run.tightness_file.unlink(missing_ok=True)
    monkeypatch.setitem(BUDGETS, "smoke", Budget(160, 5, 1e-2))
    alone = measure_run(run, "smoke")
    run.tightness_file.unlink()
    meet, sums, firsts = Barrier(2, timeout=60), dict[int, torch.Tensor](), dict[int, Any]()

    def shard(index: int) -> Shard:
        def total(value: torch.Tensor) -> torch.Tensor:
            sums[index] = value
            meet.wait()
            added = sums[0] + sums[1]
            meet.wait()
            return added

        def first(value: Any) -> Any:
            firsts[index] = value
            meet.wait()
            mine = firsts[0]
            meet.wait()
            return mine

        return Shard(index, 2, total, first)

    with ThreadPoolExecutor(2) as threads:
        both = list(threads.map(lambda i: measure_run(run, "smoke", shard=shard(i)), range(2)))
    assert both[0].searched == both[1].searched == 160
    assert [found.lower for found in both] == [alone.lower] * 2
    assert both[0].witness == alone.witness
    assert run.tightness() == both[0]
