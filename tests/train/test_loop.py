"""The loop: what it writes, how it stops, and that a resumed run is the same run."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lipcert import InputError
from lipcert.data import Dataset
from lipcert.data.augmentations.standard import Standard
from lipcert.errors import InterruptedRunError, TrainingError
from lipcert.losses import CLL, CrossEntropy
from lipcert.runs import Run
from lipcert.runs.checkpoint import load_checkpoint
from lipcert.runs.metrics import Metrics
from lipcert.train import Plan, fit
from lipcert.train.optimizers.adam import adam
from lipcert.train.schedules.linear import Linear
from lipcert.train.schedules.multistep import MultiStep
from lipcert.train.schedules.polynomial import Polynomial
from lipcert.train.stacked.stack import Stack
from lipcert.train.state import Training
from lipcert.train.step import Single


def plan(**changes) -> Plan:
    torch.manual_seed(0)
    x = torch.randn(50, 2)
    settings = {
        "model": nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2)),
        "loss": CLL(eps=0.1, slack=0.1, lam=1e-4),
        "optimizer": lambda parameters: adam(parameters, lr=1e-2),
        "schedules": {"loss.slack": Polynomial(end=1e-3, gamma=2), "optimizer.lr": MultiStep(at=[0.5])},
        "train": Dataset(x, (x[:, 0] > 0).long(), ("left", "right")),
        "val": Dataset(x + 0.1, (x[:, 0] > 0).long(), ("left", "right")),
        "epochs": 6,
        "batch_size": 16,
        "seed": 3,
        "validate_every": 2,
    }
    return Plan(**{**settings, **changes})


def start(path: Path) -> Run:
    run = Run(path)
    run.start({"name": "test"}, resume=True, overwrite=False)
    return run


def after_each_step(patch: pytest.MonkeyPatch, action: Callable[[Training], object]) -> None:
    """Whichever way the steps are made."""
    for steps in (Single, Stack):

        def advance(self, original=steps.advance) -> None:
            original(self)
            action(self.training)

        patch.setattr(steps, "advance", advance)


def weights(p: Plan) -> list[Tensor]:
    return [w.detach().clone() for w in p.model.parameters()]


def test_metrics_and_tensorboard_are_written(tmp_path: Path) -> None:
    run = start(tmp_path / "run")
    fit(plan(), run)
    metrics = run.metrics()
    assert [m.epoch for m in metrics] == [1, 2, 3, 4, 5, 6]
    assert [m.step for m in metrics] == [4, 8, 12, 16, 20, 24]
    assert all(0 <= m.accuracy <= 1 and m.k_f > 0 for m in metrics)
    assert [m.validation is not None for m in metrics] == [False, True] * 3
    assert metrics[0].scheduled["optimizer.lr"] == 1e-2
    assert metrics[-1].scheduled["optimizer.lr"] == pytest.approx(1e-3)
    assert metrics[-1].scheduled["loss.slack"] == 1e-3
    assert list(run.tensorboard.glob("events*"))


def test_the_certified_accuracy_of_a_validation_is_that_of_the_estimated_constants(tmp_path: Path) -> None:
    """Counted anew from the weights: f_y above every f_j by more than ε·‖W‖₂·‖w_y − w_j‖, ε as at the end."""
    torch.manual_seed(4)
    x, y = torch.randn(300, 2), torch.randint(3, (300,))
    y = torch.where(torch.rand(300) < 0.2, y, (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long())
    names = ("a", "b", "c")
    p = plan(
        model=nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3)),
        loss=CLL(eps=0.1, slack=0.1, lam=1e-4),
        schedules={"loss.eps": Linear(end=0.05)},
        train=Dataset(x, y, names),
        val=Dataset(x + 0.1, y, names),
        epochs=8,
        validate_every=8,
    )
    run = start(tmp_path / "run")
    fit(p, run)
    body, _, head = p.model
    logits, rows = p.model(x + 0.1).detach().double(), head.weight.detach().double()
    norm = torch.linalg.matrix_norm(body.weight.detach().double(), 2)
    counts = {}
    for eps in (0.0, 0.05, 0.1):
        held = [
            all(f[label] - f[j] > eps * norm * (rows[label] - rows[j]).norm() for j in range(3) if j != label)
            for f, label in zip(logits, y.tolist(), strict=True)
        ]
        counts[eps] = sum(held) / 300
    assert 1 > counts[0.0] > counts[0.05] > counts[0.1] > 0  # the three can be told apart
    found = run.metrics()[-1].validation
    assert found is not None
    assert found.val_accuracy == counts[0.0]
    assert found.val_cra_estimate == counts[0.05]


def test_a_tie_of_two_logits_is_not_certified(tmp_path: Path) -> None:
    model = plan().model
    nn.init.zeros_(model[-1].weight)
    nn.init.zeros_(model[-1].bias)
    still = {"loss": CrossEntropy(), "schedules": {}, "optimizer": lambda w: torch.optim.SGD(w, lr=0.0)}
    p = plan(model=model, epochs=1, validate_every=1, **still)
    run = start(tmp_path / "run")
    fit(p, run)
    (metrics,) = run.metrics()
    assert metrics.validation is not None
    assert metrics.validation.val_accuracy == float((p.val.y == 0).double().mean()) > 0
    assert metrics.validation.val_cra_estimate == 0.0


def test_every_sample_is_seen_once_an_epoch_in_an_order_of_its_own() -> None:
    p = plan()
    orders = [torch.cat(p.batches(epoch)) for epoch in range(3)]
    assert all(sorted(o.tolist()) == list(range(50)) for o in orders)
    assert orders[0].tolist() != orders[1].tolist()
    assert plan().batches(1)[0].tolist() == p.batches(1)[0].tolist()


@pytest.mark.parametrize(
    ("step", "changes"),
    [
        *((step, {}) for step in (1, 4, 5, 11, 23)),
        (5, {"estimate": "power"}),
        (10, {"estimate": "power", "no_decay": ["*.bias"], "ema": 0.9}),
    ],
    ids=str,
)
def test_a_run_interrupted_at_any_step_ends_in_the_same_weights(
    step: int, changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = plan(**changes)
    reference = start(tmp_path / "whole")
    fit(whole, reference)
    broken, run = plan(**changes), start(tmp_path / "broken")

    def signal_then(training: Training) -> None:
        if training.step == step:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        after_each_step(patch, signal_then)
        with pytest.raises(InterruptedRunError, match=f"after step {step}"):
            fit(broken, run)
    assert load_checkpoint(run.checkpoint)["step"] == step
    torch.manual_seed(99)  # whatever the new process starts with
    resumed = plan(**changes)
    fit(resumed, run)
    for a, b in zip(weights(whole), weights(resumed), strict=True):
        assert torch.equal(a, b)
    without_time = [[dataclasses.replace(m, seconds=0.0) for m in r.metrics()] for r in (reference, run)]
    assert without_time[0] == without_time[1]


def test_power_iterations_are_five_a_step_whether_validated_or_not(tmp_path: Path) -> None:
    """A validation needs better vectors, which the training must not inherit."""
    found = {}
    for name, changes in {
        "often": {"estimate": "power", "validate_every": 1},
        "never": {"estimate": "power", "validate_every": 0},
        "krylov": {"validate_every": 1},
    }.items():
        torch.manual_seed(5)
        p = plan(**changes, model=nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)))
        fit(p, start(tmp_path / name))
        found[name] = weights(p)
    assert all(torch.equal(a, b) for a, b in zip(found["often"], found["never"], strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(found["often"], found["krylov"], strict=True))


def test_power_iterations_take_no_turns() -> None:
    with pytest.raises(InputError, match="turns: expected 1 with estimate: power, got 3"):
        plan(estimate="power", turns=3)


def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_good_state(tmp_path: Path) -> None:
    calls = []

    class Spoilt(CrossEntropy):
        def values(self, logits, labels, lip):
            calls.append(1)
            value = super().values(logits, labels, lip)
            return value * (float("nan") if len(calls) == 10 else 1.0)

    run = start(tmp_path / "run")
    with pytest.raises(TrainingError, match=r"became nan at step 10; .*last\.ckpt is the last good"):
        fit(plan(loss=Spoilt(), schedules={}), run)
    checkpoint = load_checkpoint(run.checkpoint)
    assert checkpoint["step"] == 8
    assert all(torch.isfinite(v).all() for v in checkpoint["model"].values())


def test_a_batch_larger_than_the_data_is_refused() -> None:
    with pytest.raises(InputError, match="batch_size: 51 is larger than the 50"):
        plan(batch_size=51)


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    run = start(tmp_path / "run")
    fit(plan(epochs=1), run)
    other = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 2))
    with pytest.raises(InputError, match="belongs to another model"):
        fit(plan(model=other, epochs=1), run)


def test_a_torn_line_of_metrics_is_dropped(tmp_path: Path) -> None:
    run = start(tmp_path / "run")
    lines = [Metrics(step // 4, step, 0.5, 0.9, 2.0, 1.0).line for step in (4, 8, 12)]
    run.metrics_file.write_text("".join(lines) + '{"st')
    assert len(run.metrics()) == 3
    run.rewind_metrics(8)
    assert [json.loads(line)["step"] for line in run.metrics_file.read_text().splitlines()] == [4, 8]


def test_float64_trains_in_float64(tmp_path: Path) -> None:
    p = plan(epochs=1)
    p.model.double()
    fit(p, start(tmp_path / "run"))
    assert p.model[0].weight.dtype == torch.float64


def trained(tmp_path: Path, name: str, **changes) -> list[Tensor]:
    p = plan(**{"model": nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)).double(), **changes})
    torch.manual_seed(1)
    for w in p.model.parameters():
        nn.init.normal_(w)
    fit(p, start(tmp_path / name))
    return weights(p)


def test_pieces_of_a_batch_add_up_to_it(tmp_path: Path) -> None:
    for a, b in zip(trained(tmp_path, "a"), trained(tmp_path, "b", accumulate=3), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["convolution", "dense"])  # trained by `Single` and by `Stack`
def test_a_last_batch_with_fewer_samples_than_pieces_is_the_same_step(kind: str, tmp_path: Path) -> None:
    images = torch.randint(0, 256, (33, 1, 6, 6), dtype=torch.uint8)  # batches of 16, 16 and 1
    layers = {
        "convolution": lambda: [nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 2)],
        "dense": lambda: [nn.Flatten(), nn.Linear(36, 4), nn.ReLU(), nn.Linear(4, 2)],
    }
    common = {
        "train": Dataset(images, torch.arange(33) % 2, ("a", "b")),
        "val": None,
        "validate_every": 0,
        "augmentation": Standard(crop=1, flip=True, rotate=5, jitter=0.2),
    }
    found = []
    for pieces in (1, 3):
        model = nn.Sequential(*layers[kind]()).double()
        found.append(trained(tmp_path, str(pieces), model=model, accumulate=pieces, **common))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_gradients_are_clipped(tmp_path: Path) -> None:
    sgd = lambda parameters: torch.optim.SGD(parameters, lr=1.0)  # noqa: E731
    common = {"optimizer": sgd, "schedules": {}, "epochs": 1, "batch_size": 50}
    begin = trained(tmp_path, "none", **{**common, "optimizer": lambda p: torch.optim.SGD(p, lr=0.0)})
    end = trained(tmp_path, "clipped", clip=1e-3, **common)
    moved = torch.cat([(a - b).flatten() for a, b in zip(begin, end, strict=True)]).norm()
    assert float(moved) == pytest.approx(1e-3, rel=1e-3)


def test_the_average_of_the_weights_is_delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path: list[list[Tensor]] = []
    p = plan(ema=0.5, epochs=2, model=nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)))
    begin = weights(p)
    after_each_step(monkeypatch, lambda _: path.append(weights(p)))
    fit(p, start(tmp_path / "run"))
    expected = begin
    for step, now in enumerate(path):
        d = min(0.5, (1 + step) / (10 + step))
        expected = [d * a + (1 - d) * w for a, w in zip(expected, now, strict=True)]
    for a, b in zip(weights(p), expected, strict=True):
        torch.testing.assert_close(a, b)


def test_balanced_classes_count_the_same(tmp_path: Path) -> None:
    x = torch.randn(60, 2)
    y = (torch.arange(60) % 6 == 0).long()  # one in six
    p = plan(train=Dataset(x, y, ("many", "few")), val=None, validate_every=0, balanced=True)
    weight = p.class_weights()
    assert weight is not None
    assert weight.tolist() == pytest.approx([0.6, 3.0])


def test_images_train_in_any_layout(tmp_path: Path) -> None:
    images = torch.randint(0, 256, (40, 3, 8, 8), dtype=torch.uint8)
    data = Dataset(images, torch.arange(40) % 2, ("a", "b"))
    found = []
    for channels_last in (False, True):
        torch.manual_seed(2)
        layers = (nn.Conv2d(3, 4, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))
        p = plan(
            model=nn.Sequential(*layers).double(),
            train=data,
            val=data,
            augmentation=Standard(crop=2, flip=True, rotate=5, jitter=0.2),
            channels_last=channels_last,
        )
        fit(p, start(tmp_path / str(channels_last)))
        found.append(weights(p))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_augmentation_of_what_are_no_images_is_refused() -> None:
    with pytest.raises(InputError, match="augment"):
        plan(augmentation=Standard(crop=2))


def test_any_number_of_turns_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs: list[object] = []

    def backend(graph: torch.fx.GraphModule, inputs: object) -> Callable[..., object]:
        graphs.append(graph)
        return graph.forward

    compile_ = torch.compile
    monkeypatch.setattr(torch, "compile", lambda module, **_: compile_(module, backend=backend))
    monkeypatch.setattr("lipcert.train.loop.is_stackable", lambda training: False)  # turns are of `Single`
    layers = [layer for _ in range(12) for layer in (nn.Linear(2, 2), nn.ReLU())]
    found, counts = [], []
    for turns, compiled in ((12, False), (12, True), (2, True)):
        torch._dynamo.reset()
        torch.manual_seed(2)
        model = nn.Sequential(*copy.deepcopy(layers), nn.Linear(2, 2))
        p = plan(model=model, turns=turns, compile=compiled, batch_size=25)
        graphs.clear()
        fit(p, start(tmp_path / f"{turns}-{compiled}"))
        found.append(weights(p))
        counts.append(len(graphs))
    for a, b in zip(*found[:2], strict=True):
        torch.testing.assert_close(a, b)
    assert counts[0] == 0
    assert counts[1] == counts[2] > 0


def test_one_class_is_nothing_to_learn() -> None:
    with pytest.raises(InputError, match="every sample is of class 'a'"):
        plan(train=Dataset(torch.zeros(40, 2), torch.zeros(40).long(), ("a", "b")))


def test_weights_that_are_not_finite_are_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    p = plan(epochs=1, batch_size=50, model=nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)))
    run = start(tmp_path / "run")
    after_each_step(monkeypatch, lambda _: nn.init.constant_(p.model[0].weight, float("nan")))
    with pytest.raises(TrainingError, match="not finite after step 1"):
        fit(p, run)
    assert not run.checkpoint.exists()
