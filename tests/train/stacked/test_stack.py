"""A stack of trainings: each does what it does alone, whatever happens to it or to the others."""

from __future__ import annotations

import dataclasses
import math
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from lipcert import InputError, PairLip
from lipcert.data import Dataset
from lipcert.data.augmentations.standard import Standard
from lipcert.errors import InterruptedRunError, TrainingError
from lipcert.losses import AOL, CLL, LOSSES, CrossEntropy, GloRo, Loss
from lipcert.nn import MinMax, ShiftMix
from lipcert.runs import Run
from lipcert.runs.checkpoint import load_checkpoint
from lipcert.train import Hardware, Plan, fit, fit_stack
from lipcert.train.optimizers.adam import adam
from lipcert.train.optimizers.sgd import sgd
from lipcert.train.schedules.multistep import MultiStep
from lipcert.train.schedules.polynomial import Polynomial
from lipcert.train.stacked.stack import Stack
from lipcert.train.state import Training
from lipcert.train.step import Single

SLACK = {"loss.slack": Polynomial(end=1e-3, gamma=2), "optimizer.lr": MultiStep(at=[0.5])}
RATE = {"optimizer.lr": MultiStep(at=[0.5])}


def mlp(*sizes: int) -> nn.Sequential:
    layers = [m for a, b in pairwise(sizes[:-1]) for m in (nn.Linear(a, b), MinMax())]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


def points(seed: int = 0) -> Dataset:
    x = torch.randn(50, 2, generator=torch.Generator().manual_seed(seed))
    return Dataset(x, (x[:, 0] > 0.5).long(), ("left", "right"))


def plan(seed: int, loss: Loss, **changes: Any) -> Plan:
    torch.manual_seed(seed)
    settings = {
        "model": changes.pop("make", lambda: mlp(2, 8, 6, 2))(),
        "loss": loss,
        "optimizer": lambda parameters: adam(parameters, lr=1e-2),
        "schedules": SLACK if isinstance(loss, CLL) else RATE,
        "train": points(),
        "val": points(1),
        "epochs": 6,
        "batch_size": 16,
        "seed": seed,
        "validate_every": 2,
    }
    return Plan(**{**settings, **changes})


def mixed(**changes: Any) -> list[Plan]:
    """Losses of three kinds, not in order, with numbers of their own."""
    losses: list[Loss] = [
        CLL(eps=0.1, slack=0.1, lam=1e-4),
        GloRo(eps=0.2),
        CLL(eps=0.3, slack=0.2, lam=1e-3),
        CrossEntropy(),
        CLL(eps=0.3, slack=0.2, sides="one"),
    ]
    return [plan(seed, loss, **changes) for seed, loss in enumerate(losses)]


def start(path: Path) -> Run:
    run = Run(path)
    run.start({"name": "test"}, resume=True, overwrite=False)
    return run


def directories(path: Path, count: int) -> list[Run]:
    return [start(path / str(i)) for i in range(count)]


def weights(p: Plan) -> list[Tensor]:
    return [w.detach().clone() for w in p.model.parameters()]


def alone(path: Path, plans: list[Plan]) -> list[list[Tensor]]:
    for p, run in zip(plans, directories(path, len(plans)), strict=True):
        fit(p, run)
    return [weights(p) for p in plans]


def together(path: Path, plans: list[Plan]) -> list[list[Tensor]]:
    fit_stack(plans, directories(path, len(plans)))
    return [weights(p) for p in plans]


def same(one: list[list[Tensor]], other: list[list[Tensor]]) -> bool:
    return all(torch.equal(a, b) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True))


def after_each_step(patch: pytest.MonkeyPatch, action: Callable[[Stack], object]) -> None:
    original = Stack.advance

    def advance(self: Stack) -> None:
        original(self)
        action(self)

    patch.setattr(Stack, "advance", advance)


SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "pieces": {"accumulate": 3},
    "clipped": {"clip": 0.1},
    "averaged": {"ema": 0.9},
    "balanced": {"balanced": True},
    "momentum": {"optimizer": lambda p: sgd(p, lr=0.1, momentum=0.9)},
    "one hidden layer": {"make": lambda: mlp(2, 6, 2)},
    "one logit": {"make": lambda: mlp(2, 6, 6, 1)},
    "large": {"make": lambda: mlp(2, 160, 6, 2)},
    "no bias": {"make": lambda: nn.Sequential(nn.Linear(2, 6, bias=False), nn.ReLU(), nn.Linear(6, 2))},
    "a residual": {"make": lambda: nn.Sequential(nn.Linear(2, 6), Residual(6), nn.Linear(6, 2))},
    "a learned slope": {"make": lambda: nn.Sequential(nn.Linear(2, 6), nn.PReLU(6), nn.Linear(6, 2))},
}


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


@pytest.mark.parametrize("setting", SETTINGS)
def test_each_model_does_what_it_does_alone(setting: str, tmp_path: Path) -> None:
    changes = SETTINGS[setting]
    one = alone(tmp_path / "alone", mixed(**changes))
    other = together(tmp_path / "together", mixed(**changes))
    if setting == "a learned slope":  # not an MLP: alone it goes another way
        for a, b in zip([w for m in one for w in m], [w for m in other for w in m], strict=True):
            torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-3)
    else:
        assert same(one, other)
    metrics = [
        [dataclasses.replace(line, seconds=0.0) for line in Run(tmp_path / way / "1").metrics()]
        for way in ("alone", "together")
    ]
    assert all(line.validation for line in metrics[0] if line.epoch % 2 == 0)
    if setting != "a learned slope":
        assert metrics[0] == metrics[1]


def test_data_may_differ(tmp_path: Path) -> None:
    def plans() -> list[Plan]:
        return [plan(i, GloRo(eps=0.1), train=points(i)) for i in range(3)]

    assert same(alone(tmp_path / "alone", plans()), together(tmp_path / "together", plans()))


def test_images_and_convolutions(tmp_path: Path) -> None:
    images = torch.randint(0, 256, (40, 3, 8, 8), dtype=torch.uint8)
    data = Dataset(images, torch.arange(40) % 2, ("a", "b"))

    def plans(*layers: Callable[[], nn.Module]) -> list[Plan]:
        augmentation = Standard(crop=2, flip=True, rotate=5, jitter=0.2)
        common = {"train": data, "val": data, "augmentation": augmentation, "clip": 1.0}
        return [
            plan(i, CLL(eps=0.1, slack=0.1), make=lambda: nn.Sequential(*(f() for f in layers)), **common)
            for i in range(3)
        ]

    dense = (nn.Flatten, lambda: nn.Linear(192, 6), nn.ReLU, lambda: nn.Linear(6, 2))
    assert same(alone(tmp_path / "a", plans(*dense)), together(tmp_path / "b", plans(*dense)))
    mixed = (lambda: nn.Conv2d(3, 4, 3, 2, 1), nn.ReLU, nn.Flatten, lambda: nn.Linear(64, 2))
    one, other = alone(tmp_path / "c", plans(*mixed)), together(tmp_path / "d", plans(*mixed))
    for a, b in zip([w for m in one for w in m], [w for m in other for w in m], strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-3)


def test_a_step_is_that_of_the_general_engine(tmp_path: Path) -> None:
    """Which knows nothing of stacks: the same objective, the same gradients, in float64."""
    for make in (lambda: mlp(2, 8, 6, 2).double(), lambda: mlp(2, 160, 6, 2).double()):
        found = []
        for steps in (Single, lambda training: Stack([training])):
            p = plan(0, CLL(eps=0.1, slack=0.1, lam=1e-2, detach_constant=False), make=make, iterations=60)
            it = steps(Training(p, start(tmp_path / "run"), Hardware("cpu").launch()))
            for _ in range(3):
                it.advance()
            found.append(weights(p))
        for a, b in zip(*found, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)


def test_calls_do_not_grow_with_the_number_of_models(tmp_path: Path) -> None:
    def calls(count: int) -> int:
        fabric = Hardware("cpu").launch()
        plans = [plan(i, (CLL(eps=0.1, slack=0.1), GloRo(eps=0.1))[i % 2]) for i in range(count)]
        stack = Stack([Training(p, start(tmp_path / f"{count}-{i}"), fabric) for i, p in enumerate(plans)])
        stack.advance()
        with profile(activities=[ProfilerActivity.CPU]) as found:
            stack.advance()
        return sum(event.count for event in found.key_averages() if event.key.startswith("aten::"))

    # Two of each kind of loss: where there is one, some copies are not needed.
    assert calls(4) == calls(12)


@pytest.mark.parametrize("step", [1, 4, 11])
def test_an_interrupted_stack_goes_on_as_a_stack_or_alone(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = together(tmp_path / "whole", mixed())

    def signal_then(stack: Stack) -> None:
        if stack.trainings[0].step == step:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        after_each_step(patch, signal_then)
        with pytest.raises(InterruptedRunError, match=f"after step {step}"):
            together(tmp_path / "broken", mixed())
    shutil.copytree(tmp_path / "broken", tmp_path / "copy")
    torch.manual_seed(99)
    assert same(together(tmp_path / "broken", mixed()), expected)
    assert same(alone(tmp_path / "copy", mixed()), expected)


def test_those_that_are_behind_catch_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between two checkpoints, or joined by a new one."""
    expected = together(tmp_path / "whole", mixed())

    def keep(stack: Stack) -> None:
        if stack.trainings[0].step in (8, 16):
            kept = tmp_path / f"kept{stack.trainings[0].step}"
            shutil.copytree(tmp_path / "run", kept, dirs_exist_ok=True)

    with monkeypatch.context() as patch:
        after_each_step(patch, keep)
        together(tmp_path / "run", mixed())
    later, earlier = tmp_path / "kept16", tmp_path / "kept8"
    shutil.copy(earlier / "1/checkpoints/last.ckpt", later / "1/checkpoints/last.ckpt")
    shutil.rmtree(later / "2")
    assert same(together(later, mixed()), expected)
    assert [line.epoch for line in Run(later / "2").metrics()] == [1, 2, 3, 4, 5, 6]


def test_one_that_fails_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = together(tmp_path / "whole", mixed())
    plans = mixed()

    def spoil(stack: Stack) -> None:
        for training in stack.trainings:
            if training.step == 6 and training.plan is plans[2]:
                nn.init.constant_(training.plan.model[0].weight, float("nan"))

    after_each_step(monkeypatch, spoil)
    with pytest.raises(TrainingError, match=r"became nan at step 7; .*/2/checkpoints/last.ckpt is the last"):
        together(tmp_path / "run", plans)
    rest = [0, 1, 3, 4]
    assert same([weights(plans[i]) for i in rest], [expected[i] for i in rest])


def test_a_checkpoint_holds_one_model(tmp_path: Path) -> None:
    sizes = []
    for count in (1, 8):
        together(tmp_path / str(count), [plan(i, GloRo(eps=0.1)) for i in range(count)])
        sizes.append((tmp_path / str(count) / "0/checkpoints/last.ckpt").stat().st_size)
    assert sizes[0] == pytest.approx(sizes[1], rel=0.01)


def test_what_cannot_be_one_is_refused(tmp_path: Path) -> None:
    def refuse(*plans: Plan) -> None:
        fit_stack(plans, directories(tmp_path, len(plans)))

    one = plan(0, GloRo(eps=0.1))
    with pytest.raises(InputError, match=r"train\.epochs must be the same for all, got 6 and 7"):
        refuse(one, plan(1, GloRo(eps=0.1), epochs=7))
    few = Dataset(points().x[:30], points().y[:30], points().classes)
    with pytest.raises(InputError, match="equally many samples"):
        refuse(one, plan(1, GloRo(eps=0.1), train=few))
    with pytest.raises(InputError, match="its numbers"):
        refuse(one, plan(1, GloRo(eps=0.1), optimizer=lambda p: adam(p, lr=0.1)))
    with pytest.raises(InputError, match="schedules"):
        refuse(one, plan(1, GloRo(eps=0.1), schedules={}))
    with pytest.raises(InputError, match="architecture"):
        refuse(one, plan(1, GloRo(eps=0.1), make=lambda: mlp(2, 8, 8, 2)))
    with pytest.raises(InputError, match="classes"):
        refuse(one, plan(1, GloRo(eps=0.1), train=Dataset(points().x, points().y, ("a", "b"))))
    with pytest.raises(InputError, match="single trainings"):
        refuse(one, plan(1, GloRo(eps=0.1), local=0.1))
    with pytest.raises(InputError, match=r"train\.estimate: power is for single trainings"):
        refuse(one, plan(1, GloRo(eps=0.1), estimate="power"))
    with pytest.raises(InputError, match=r"optimizer\.no_decay is for single trainings"):
        refuse(one, plan(1, GloRo(eps=0.1), no_decay=["*.bias"]))
    drop = lambda: nn.Sequential(nn.Linear(2, 4), nn.Dropout(), nn.Linear(4, 2))  # noqa: E731
    with pytest.raises(InputError, match="dropout"):
        refuse(plan(0, GloRo(eps=0.1), make=drop), plan(1, GloRo(eps=0.1), make=drop))

    def turned() -> nn.Module:
        return nn.Sequential(nn.Unflatten(1, (2, 1, 1)), ShiftMix(2, (1, 1)), nn.Flatten(), nn.Linear(2, 2))

    with pytest.raises(InputError, match="optimiser"):
        refuse(plan(0, GloRo(eps=0.1), make=turned), plan(1, GloRo(eps=0.1), make=turned))


def test_one_that_fails_while_it_catches_up_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans, concluded = [plan(i, GloRo(eps=0.1)) for i in range(2)], []
    runs = directories(tmp_path, 2)

    def stop(stack: Stack) -> None:
        if stack.trainings[0].step == 8:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        after_each_step(patch, stop)
        with pytest.raises(InterruptedRunError):
            fit(plans[1], runs[1])
    plans = [plan(i, GloRo(eps=0.1)) for i in range(2)]
    nn.init.constant_(plans[0].model[0].weight, float("nan"))
    with pytest.raises(TrainingError, match="became nan at step 1"):
        fit_stack(plans, runs, conclude=lambda index, seconds: concluded.append(index))
    assert concluded == [1]
    assert load_checkpoint(runs[1].checkpoint)["step"] == plans[1].total_steps


@dataclass(frozen=True)
class Own(Loss):
    """A loss of a user, which knows nothing of stacks."""

    weight: float = 2.0

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        return math.sqrt(self.weight) * F.cross_entropy(logits, labels, reduction="none")

    def penalty(self, lip: PairLip) -> Tensor:
        return 1e-3 * lip.head.square().sum()


def test_losses_and_optimisers_of_ones_own_work(tmp_path: Path) -> None:
    def plans() -> list[Plan]:
        mine = Own(2.0)  # the same object for two of them
        losses = [mine, GloRo(eps=0.1), mine, Own(3.0)]
        return [plan(i, loss, schedules=RATE) for i, loss in enumerate(losses)]

    assert same(alone(tmp_path / "alone", plans()), together(tmp_path / "together", plans()))

    class Mine(torch.optim.Adam):
        """One that may look at the shapes of what it steps."""

    steps = []

    def optimizer(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        parameters = list(parameters)
        steps.append([tuple(p.shape) for p in parameters])
        return Mine(parameters, lr=1e-3)

    fit(plan(0, GloRo(eps=0.1), optimizer=optimizer), start(tmp_path / "mine"))
    assert steps == [[(8, 2), (8,), (6, 8), (6,), (2, 6), (2,)]]
    with pytest.raises(InputError, match="must be Adam, AdamW or SGD"):
        together(tmp_path / "refused", [plan(i, GloRo(eps=0.1), optimizer=optimizer) for i in range(2)])


@pytest.mark.parametrize("name", list(LOSSES))
def test_every_loss_can_be_stacked(name: str, tmp_path: Path) -> None:
    def plans() -> list[Plan]:
        return [plan(i, LOSSES.example(name), schedules=RATE) for i in range(2)] + [plan(2, AOL())]

    assert same(alone(tmp_path / "alone", plans()), together(tmp_path / "together", plans()))


@dataclass(frozen=True)
class Asking(Loss):
    """A loss that asks for values, which vmap cannot give, and mixes the samples of a batch."""

    weight: float = 2.0

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        values = F.cross_entropy(logits, labels, reduction="none")
        return self.weight * values if float(values.detach().max()) > 0.5 else values / values.mean()


def test_a_loss_that_vmap_does_not_understand_is_computed_model_by_model(tmp_path: Path) -> None:
    def plans() -> list[Plan]:
        return [plan(i, loss, schedules=RATE) for i, loss in enumerate([Asking(2.0), AOL(), Asking(3.0)])]

    assert same(alone(tmp_path / "alone", plans()), together(tmp_path / "together", plans()))


def test_labels_beyond_the_logits_are_named(tmp_path: Path) -> None:
    three = Dataset(points().x, torch.arange(50) % 3, ("a", "b", "c"))
    with pytest.raises(InputError, match=r"labels: expected 0\.\.1, got 2"):
        together(tmp_path, [plan(i, GloRo(eps=0.1), train=three, val=three) for i in range(2)])


def test_losses_of_one_kind_with_and_without_an_offset_stay_apart(tmp_path: Path) -> None:
    def plans() -> list[Plan]:
        losses = [CLL(eps=0.1, slack=0.1), CLL(eps=0.1, slack=0.1, offset=0.2), CLL(eps=0.2, slack=0.1)]
        return [plan(i, loss) for i, loss in enumerate(losses)]

    assert same(alone(tmp_path / "alone", plans()), together(tmp_path / "together", plans()))


def test_the_trainings_of_a_stack_share_its_seconds(tmp_path: Path) -> None:
    plans = mixed()
    begin = time.perf_counter()
    seconds = fit_stack(plans, directories(tmp_path, len(plans)))
    assert 0 < sum(seconds) <= time.perf_counter() - begin
    assert max(seconds) == pytest.approx(min(seconds))
