"""The state of a training: which numbers it reports, and when it is saved."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lipcert.losses import CrossEntropy
from lipcert.runs.checkpoint import Checkpoint, load_checkpoint
from lipcert.train import fit
from lipcert.train.cadence import Cadence
from lipcert.train.state import Training
from tests.train.test_loop import plan, start, weights


def test_the_cost_of_a_checkpoint_is_how_long_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = []
    monkeypatch.setattr(Cadence, "saved", lambda self, seconds, cost: noted.append((seconds, cost)))
    began = time.perf_counter()
    fit(plan(epochs=2), start(tmp_path / "run"))
    spent = time.perf_counter() - began
    assert noted
    assert all(0 < seconds < spent and 0 < cost < spent for seconds, cost in noted)


class OwnSGD(torch.optim.SGD):
    """Another type: a stack does not take it, so that the steps are those of one training."""


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))


@pytest.mark.parametrize("sgd", [torch.optim.SGD, OwnSGD])
def test_the_loss_of_an_epoch_is_the_mean_over_its_samples(
    sgd: type[torch.optim.SGD], tmp_path: Path
) -> None:
    p = plan(model=network(), loss=CrossEntropy(), schedules={}, optimizer=lambda w: sgd(w, lr=0.0), epochs=1)
    run = start(tmp_path / "run")
    fit(p, run)
    logits = p.model(p.train.x).detach()
    assert len(p.batches(0)[-1]) == 2  # after batches of 16
    (metrics,) = run.metrics()
    assert metrics.loss == pytest.approx(float(F.cross_entropy(logits, p.train.y)), rel=1e-6)
    assert metrics.accuracy == float((logits.argmax(dim=1) == p.train.y).double().mean())


@pytest.mark.parametrize("sgd", [torch.optim.SGD, OwnSGD])
def test_a_balanced_step_weighs_every_sample_by_its_class(sgd: type[torch.optim.SGD], tmp_path: Path) -> None:
    p = plan(
        model=network(),
        loss=CrossEntropy(),
        schedules={},
        optimizer=lambda w: sgd(w, lr=0.1),
        epochs=1,
        batch_size=50,
        balanced=True,
    )
    values = F.cross_entropy(p.model(p.train.x), p.train.y, reduction="none")
    few = 50 / (2 * p.train.y.bincount()[p.train.y])
    assert few.min() < 1 < few.max()
    gradients = torch.autograd.grad((few * values).mean(), list(p.model.parameters()))
    expected = [w - 0.1 * g for w, g in zip(weights(p), gradients, strict=True)]
    fit(p, start(tmp_path / "run"))
    for found, wanted in zip(weights(p), expected, strict=True):
        torch.testing.assert_close(found, wanted)


def test_the_end_is_saved_whatever_the_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[int] = []
    save = Training.save
    monkeypatch.setattr(Training, "save", lambda self: (saved.append(self.step), save(self)))
    run = start(tmp_path / "run")
    fit(plan(checkpoint_every=4), run)
    assert saved == [16, 24]
    assert load_checkpoint(run.checkpoint)["step"] == 24


def test_slow_checkpoints_are_rare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[int] = []

    def save(path: Path, checkpoint: Checkpoint) -> None:
        saved.append(checkpoint["step"])
        time.sleep(0.5)

    monkeypatch.setattr("lipcert.runs.run.save_checkpoint", save)
    fit(plan(checkpoint_every="auto"), start(tmp_path / "run"))
    assert saved == [4, 24]  # six epochs of four steps: the first, and the end
