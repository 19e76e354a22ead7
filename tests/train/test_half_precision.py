"""Half precision scales gradients: they are clipped, and the scale is resumed. Autocast needs a GPU."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.precision.amp import MixedPrecision

from lipcert.errors import InterruptedRunError
from lipcert.train import fit
from lipcert.train.optimizers.adam import adam
from lipcert.train.optimizers.sgd import sgd
from lipcert.train.random_states import random_states, set_random_states
from tests.train.test_loop import after_each_step, plan, start, weights


class Scaled(MixedPrecision):
    """The gradients of 16-mixed are scaled, the numbers are those of full precision."""

    def __init__(self, **settings: Any) -> None:
        super().__init__("16-mixed", "cpu", torch.amp.GradScaler("cpu", **settings))

    def forward_context(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def convert_input(self, data: Any) -> Any:
        return data

    def convert_output(self, data: Any) -> Any:
        return data


def fabric(**settings: Any) -> Fabric:
    return Fabric(accelerator="cpu", devices=1, plugins=[Scaled(**settings)])


@pytest.mark.parametrize("make", [adam, sgd])
def test_scaled_gradients_are_clipped_as_others_are(make: Any, tmp_path: Path) -> None:
    found = []
    for name, where in (("full", None), ("half", fabric(init_scale=1024.0))):
        p = plan(clip=1e-2, optimizer=lambda parameters: make(parameters, lr=1e-2))
        p.model[2].p = 0.0
        fit(p, start(tmp_path / name), where)
        found.append(weights(p))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


def test_the_scale_is_that_of_a_run_without_a_break(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"init_scale": 4.0, "growth_interval": 5}
    whole, broken, resumed = (fabric(**settings) for _ in range(3))
    fit(plan(clip=1.0), start(tmp_path / "whole"), whole)
    run = start(tmp_path / "broken")

    def signal_then(training: Any) -> None:
        if training.step == 13:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        after_each_step(patch, signal_then)
        with pytest.raises(InterruptedRunError):
            fit(plan(clip=1.0), run, broken)
    fit(plan(clip=1.0), run, resumed)
    states = [each.strategy.precision.state_dict() for each in (whole, resumed)]
    assert states[0]["scale"] == 4.0 * 2**4  # 24 steps
    assert states[0] == states[1]


def test_the_generator_of_an_accelerator_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = torch.Generator().manual_seed(5)
    module = SimpleNamespace(get_rng_state=theirs.get_state, set_rng_state=theirs.set_state)
    monkeypatch.setattr(torch, "get_device_module", lambda device: module)
    device = torch.device("cuda")
    states = random_states(device)
    drawn = torch.rand(3), torch.rand(3, generator=theirs)
    set_random_states(states, device)
    assert torch.equal(torch.rand(3), drawn[0])
    assert torch.equal(torch.rand(3, generator=theirs), drawn[1])
    set_random_states({"cpu": states["cpu"]}, device)  # as of a run that began on the CPU
    assert torch.equal(torch.rand(3), drawn[0])
