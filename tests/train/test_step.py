"""The steps of a training: how many there are, and where they lead."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lipcert.losses import CLL
from lipcert.train import fit
from tests.train.test_loop import after_each_step, plan, start
from tests.train.test_state import OwnSGD, network

OPTIMIZERS = pytest.mark.parametrize("sgd", [torch.optim.SGD, OwnSGD])  # as a stack of one, and alone


@OPTIMIZERS
def test_a_training_makes_its_steps_and_no_more(
    sgd: type[torch.optim.SGD], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    after_each_step(monkeypatch, lambda training: made.append(training.step))
    p = plan(model=network(), schedules={}, optimizer=lambda w: sgd(w, lr=0.01), epochs=2)
    fit(p, start(tmp_path / "run"))
    assert made == [1, 2, 3, 4, 5, 6, 7, 8]


@OPTIMIZERS
def test_the_penalty_keeps_the_constant_small(sgd: type[torch.optim.SGD], tmp_path: Path) -> None:
    constants = []
    for lam in (0.0, 1.0):
        torch.manual_seed(0)
        loss = CLL(eps=0.1, slack=0.1, lam=lam)
        run = start(tmp_path / str(lam))
        fit(plan(model=network(), loss=loss, schedules={}, optimizer=lambda w: sgd(w, lr=0.02)), run)
        constants.append(run.metrics()[-1].k_f)
    assert constants[1] < 0.9 * constants[0]
