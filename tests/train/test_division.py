"""Batches that are divided: by `accumulate`, and among processes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from lipcert import InputError
from lipcert.data import Dataset
from lipcert.losses import HKR, CrossEntropy
from lipcert.train import fit, fit_stack
from lipcert.train.division import check_division
from lipcert.train.state import Training
from tests.train.test_loop import plan, start


def normed() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


def test_a_loss_that_compares_samples_is_not_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"loss: HKR compares the samples of a batch, .* 2 pieces here"):
        plan(loss=HKR(), schedules={}, accumulate=2)
    whole = plan(loss=HKR(), schedules={})
    three = SimpleNamespace(count=3)
    monkeypatch.setattr("lipcert.train.state.shard_of", lambda fabric: three)
    with pytest.raises(InputError, match="3 pieces here"):
        Training(whole, start(tmp_path / "run"), SimpleNamespace(device=torch.device("cpu")))


def test_batch_norm_needs_two_samples_per_piece() -> None:
    check_division(CrossEntropy(), normed(), batch_size=8, pieces=4)
    with pytest.raises(InputError, match=r"batch_size: batch norm needs at least 10 .*, got 9"):
        check_division(CrossEntropy(), normed(), batch_size=9, pieces=5)
    with pytest.raises(InputError, match="batch norm needs at least 2"):
        plan(model=normed(), batch_size=1)
    plan(batch_size=1)  # a model without batch norm


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_batch_norm_takes_a_last_batch_of_one(stacked: bool, accumulate: int, tmp_path: Path) -> None:
    x = torch.randn(33, 2)  # batches of 16, 16 and 1
    data = Dataset(x, (x[:, 0] > 0).long(), ("left", "right"))
    model = normed()
    p = plan(model=model, train=data, val=None, validate_every=0, epochs=1, accumulate=accumulate)
    run = start(tmp_path / "run")
    if stacked:
        fit_stack([p], [run])
    else:
        fit(p, run)
    # The single sample has no part in the statistics: pieces of two full batches alone count.
    assert int(model[1].num_batches_tracked) == 2 * accumulate
    assert torch.isfinite(model[1].running_var).all()
    assert model[1].training
