"""Parameters without weight decay: they move by their gradients alone, under every optimiser."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from lipcert import Bounded, InputError
from lipcert.losses import CLL
from lipcert.models import create
from lipcert.nn import Householder
from lipcert.runs import Run
from lipcert.train import Hardware, fit
from lipcert.train.optimizers import OPTIMIZERS, optimizer_for
from lipcert.train.optimizers.adamw import adamw
from lipcert.train.optimizers.decay import matching
from lipcert.train.schedules.linear import Linear
from lipcert.train.state import Training
from lipcert.train.step import Single
from tests.train.test_loop import plan, start

every_optimizer = pytest.mark.parametrize("name", list(OPTIMIZERS))


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 8), Householder(8), nn.Linear(8, 6), Householder(6), nn.Linear(6, 3))


def stepped(
    name: str, decay: float, no_decay: list[str]
) -> tuple[dict[str, torch.Tensor], torch.optim.Optimizer]:
    """Return every parameter after two steps with gradients that do not depend on the weights."""
    model = network()
    constructor = OPTIMIZERS[name].constructor

    def make(*given: Any, **named: Any) -> torch.optim.Optimizer:
        return constructor(*given, **named, **{**OPTIMIZERS[name].example, "weight_decay": decay})

    make.__signature__ = inspect.signature(constructor)  # type: ignore[attr-defined]
    optimizer = optimizer_for(Bounded(model, (2,)), make, no_decay)
    for _ in range(2):
        for i, p in enumerate(model.parameters()):
            p.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(i))
        optimizer.step()
    return {key: p.detach() for key, p in model.named_parameters()}, optimizer


@every_optimizer
@pytest.mark.parametrize(
    "patterns",
    [["*.theta"], ["*.theta", "*.bias"], ["2.weight"], ["*.weight"], ["*"]],
    ids=str,
)
def test_what_matches_moves_as_without_decay_and_the_rest_as_with_it(name: str, patterns: list[str]) -> None:
    found, optimizer = stepped(name, 0.3, patterns)
    with_decay, without = stepped(name, 0.3, [])[0], stepped(name, 0.0, [])[0]
    chosen = {key for key in found if any(key.endswith(pattern.strip("*")) for pattern in patterns)}
    assert chosen
    for key, value in found.items():
        expected, other = (without, with_decay) if key in chosen else (with_decay, without)
        assert torch.equal(value, expected[key]), key
        assert not torch.equal(value, other[key]), key
    assert sum(len(group["params"]) for group in optimizer.param_groups) == len(found)


def test_a_pattern_that_matches_nothing_is_an_error() -> None:
    with pytest.raises(InputError, match=r"no_decay: no parameter matches '\*\.angle'; the model has 0\.w"):
        matching(network(), ["*.theta", "*.angle"])
    assert matching(network(), []) == []


def test_the_activations_of_lipconv_are_its_angles() -> None:
    model = create("lipconv", num_classes=3, input_shape=(3, 32, 32), depth=5, width=2)
    angles = [m.theta for m in model.modules() if isinstance(m, Householder)]
    assert [id(p) for p in matching(model, ["*.theta"])] == [id(p) for p in angles]


def test_a_schedule_of_the_decay_leaves_them_out(tmp_path: Path) -> None:
    """Also one that would raise it from nothing."""
    p = plan(
        optimizer=lambda parameters: adamw(parameters, weight_decay=0.1),
        schedules={"optimizer.weight_decay": Linear(end=0.5), "optimizer.lr": Linear(end=1e-5)},
        no_decay=["*.bias"],
    )
    seen = []
    original = Single.advance

    def advance(self: Single) -> None:
        original(self)
        seen.append([(g["weight_decay"], g["lr"]) for g in self.training.optimizer.param_groups])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Single, "advance", advance)
        fit(p, start(tmp_path / "run"))
    decays, rates = ([[pair[i] for pair in groups] for groups in seen] for i in (0, 1))
    assert [groups[0] for groups in decays] == sorted({groups[0] for groups in decays})
    assert decays[-1][0] > 0.45
    assert {groups[1] for groups in decays} == {0.0}
    assert all(groups[0] == groups[1] for groups in rates)


def test_averages_and_weights_are_those_of_all_parameters(tmp_path: Path) -> None:
    p = plan(no_decay=["*.bias"], ema=0.5, loss=CLL(eps=0.1, slack=0.1))
    run = Run(tmp_path / "run")
    run.start({"name": "test"}, resume=True, overwrite=False)
    fit(p, run)
    resumed = Training(plan(no_decay=["*.bias"], ema=0.5), run, Hardware(accelerator="cpu").launch())
    assert resumed.step == p.total_steps
    assert resumed.average is not None
    for mine, average in zip(p.model.parameters(), resumed.average.weights, strict=True):
        assert torch.equal(mine, average)
