"""Muon: the direction of its steps, who moves what, and that the engine's promises hold with it."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from lipcert import Bounded, InputError
from lipcert.errors import InterruptedRunError
from lipcert.losses import CLL
from lipcert.models import MODELS
from lipcert.nn import MinMax
from lipcert.nn.shift_mix import ShiftMix
from lipcert.recipes import read_recipe
from lipcert.train import fit
from lipcert.train.optimizers import optimizer_for
from lipcert.train.optimizers.muon import _POLES, _SCALE, Muon, is_matrix, muon, orthogonalised
from lipcert.train.schedules.one_cycle import OneCycle
from lipcert.train.stacked.checks import check_stack
from lipcert.train.state import Training
from tests.train.test_loop import after_each_step, plan, start, weights

SHAPES = [(5, 9), (9, 5), (4, 4), (2, 60), (60, 2)]


def network() -> nn.Sequential:
    layers = (nn.Linear(2, 8), MinMax(), nn.Linear(8, 6), MinMax(), nn.Dropout(0.1), nn.Linear(6, 2))
    return nn.Sequential(*layers)


def with_muon(**changes):
    torch.manual_seed(5)
    optimizer = partial(muon, lr=0.05, adam_lr=1e-2)
    return plan(**{"model": network(), "optimizer": optimizer, **changes})


def test_the_numbers_are_zolotarevs() -> None:
    """From elliptic functions; the best of their kind, as the error swings between equal extremes."""
    special = pytest.importorskip("scipy.special", reason="scipy comes with the estimator's extra")
    low, poles = 0.003, 2
    m = 1 - low**2
    sn, cn, *_ = special.ellipj(np.arange(1, 2 * poles + 1) * special.ellipk(m) / (2 * poles + 1), m)
    c = (low * sn / cn) ** 2
    for j, (shift, weight) in enumerate(_POLES):
        others = np.delete(c[::2], j)
        expected = -np.prod(c[2 * j] - c[1::2]) / np.prod(c[2 * j] - others)
        assert shift == pytest.approx(c[2 * j], rel=1e-7)
        assert weight == pytest.approx(expected, rel=1e-6)
    x = np.geomspace(low, 1, 100_001)
    values = _SCALE * x * (1 + sum(weight / (x**2 + shift) for shift, weight in _POLES))
    turns = values[1:-1][np.diff(np.sign(np.diff(values))) != 0]
    extremes = np.array([values[0], *turns, values[-1]])
    assert len(extremes) == 2 * poles + 2
    np.testing.assert_allclose(np.abs(extremes - 1), 0.1291, atol=1e-4)


@pytest.mark.parametrize("shape", [*SHAPES, (300, 700)], ids=str)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-4), (torch.float64, 1e-10)], ids=str)
def test_a_step_is_the_rational_function_of_the_singular_values(
    shape: tuple[int, int], dtype: torch.dtype, tolerance: float
) -> None:
    x = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(0))
    (found,) = orthogonalised([x])
    u, s, v = torch.linalg.svd(x.double(), full_matrices=False)
    s = s / (s**4).sum() ** 0.25
    moved = _SCALE * s * (1 + sum(weight / (s**2 + shift) for shift, weight in _POLES))
    assert found.shape == x.shape
    torch.testing.assert_close(found.double(), u * moved @ v, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_all_singular_values_come_near_one_in_the_directions_they_had(
    shape: tuple[int, int], size: float
) -> None:
    x = size * torch.randn(shape, generator=torch.Generator().manual_seed(1))
    (found,) = orthogonalised([x])
    u, _, v = torch.linalg.svd(x, full_matrices=False)
    values = (u.T @ found @ v.T).diagonal()
    assert ((values > 0.86) & (values < 1.14)).all()


def test_matrices_of_one_size_do_not_disturb_each_other() -> None:
    many = [torch.randn(4, 7), torch.zeros(4, 4), 1e9 * torch.randn(9, 4), torch.randn(3, 3)]
    together = orthogonalised(many)
    for x, found in zip(many, together, strict=True):
        torch.testing.assert_close(found, orthogonalised([x])[0])
    assert not together[1].any()


def test_a_step_is_that_of_the_equations() -> None:
    torch.manual_seed(0)
    kernel, bias = nn.Parameter(torch.randn(6, 2, 3, 3)), nn.Parameter(torch.randn(6))
    dense = nn.Parameter(torch.randn(20, 5))
    kept = [p.detach().clone() for p in (kernel, dense, bias)]
    optimizer = muon([kernel, bias, dense], lr=0.1, momentum=0.9, weight_decay=0.2, adam_lr=0.01)
    means = [torch.zeros_like(kernel), torch.zeros_like(dense)]
    twin = nn.Parameter(bias.detach().clone())
    adam = torch.optim.AdamW([twin], lr=0.01, weight_decay=0.2)
    for _ in range(3):
        for p in (kernel, bias, dense):
            p.grad = torch.randn_like(p)
        twin.grad = bias.grad.clone()
        optimizer.step()
        adam.step()
        for i, (p, scale) in enumerate([(kernel, 1.0), (dense, 2.0)]):  # √(20/5) = 2
            means[i] = 0.9 * means[i] + 0.1 * p.grad
            (step,) = orthogonalised([(0.1 * p.grad + 0.9 * means[i]).flatten(1)])
            kept[i] = (1 - 0.1 * 0.2) * kept[i] - 0.1 * scale * step.view_as(p)
    torch.testing.assert_close(kernel.detach(), kept[0])
    torch.testing.assert_close(dense.detach(), kept[1])
    torch.testing.assert_close(bias.detach(), twin.detach())


def test_a_kernel_in_channels_last_order_makes_the_same_step() -> None:
    torch.manual_seed(0)
    start, gradient = torch.randn(6, 4, 3, 3), torch.randn(6, 4, 3, 3)
    moved = []
    for order in (torch.contiguous_format, torch.channels_last):
        kernel = nn.Parameter(start.clone(memory_format=order))
        kernel.grad = gradient.clone(memory_format=order)
        muon([kernel], lr=0.1).step()
        assert kernel.is_contiguous(memory_format=order)
        moved.append(kernel.detach())
    torch.testing.assert_close(*moved)
    assert (moved[0] - start).norm() > 0.1


def test_head_biases_and_vectors_are_adams() -> None:
    bounded = Bounded(network(), (2,))
    optimizer = optimizer_for(bounded, partial(muon, lr=0.1))
    names = {id(p): name for name, p in bounded.model.named_parameters()}
    matrices, rest = ([names[id(p)] for p in group["params"]] for group in optimizer.param_groups)
    assert matrices == ["0.weight", "2.weight"]
    assert rest == ["0.bias", "2.bias", "5.weight", "5.bias"]
    assert not is_matrix(nn.Parameter(torch.zeros(1, 9)))
    assert not is_matrix(nn.Parameter(torch.zeros(9, 1, 1, 1)))


@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_learns_with_it(name: str) -> None:
    example = {"num_classes": 2, "input_shape": (2,), **MODELS[name].example}
    torch.manual_seed(0)
    model, shape = MODELS.create(name, **example), example["input_shape"]
    x, y = torch.rand(16, *shape), torch.arange(16) % example["num_classes"]
    bounded, loss = Bounded(model, shape).train(), CLL(eps=0.05, slack=0.2, lam=1e-4)
    optimizer = optimizer_for(bounded, partial(muon, lr=0.02))
    values = []
    for _ in range(40):
        optimizer.zero_grad()
        logits, lip = bounded(x)
        value = loss(logits, y, lip).mean() + loss.penalty(lip)
        value.backward()
        optimizer.step()
        values.append(float(value.detach()))
    assert values[-1] < values[0]


def test_orthogonal_matrices_stay_orthogonal() -> None:
    layers = (nn.Unflatten(1, (2, 1, 1)), ShiftMix(2, (1, 1)), nn.Flatten(), nn.Linear(2, 2), nn.Linear(2, 2))
    bounded = Bounded(nn.Sequential(*layers), (2,))
    optimizer = optimizer_for(bounded, partial(muon, lr=0.1))
    turned = [p for p in bounded.parameters() if type(p).__name__ == "OrthogonalParameter"]
    for _ in range(20):
        optimizer.zero_grad()
        bounded(torch.randn(5, 2))[0].square().sum().backward()
        optimizer.step()
    assert turned
    for p in turned:
        torch.testing.assert_close(p.T @ p, torch.eye(2), rtol=0, atol=1e-5)


def test_a_schedule_shapes_both_rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    after_each_step(monkeypatch, lambda t: seen.append([g["lr"] for g in t.optimizer.param_groups]))
    fit(with_muon(schedules={"optimizer.lr": OneCycle()}, validate_every=0), start(tmp_path / "run"))
    shape = OneCycle()
    for step, rates in enumerate(seen):
        assert rates == pytest.approx([shape(0.05, step / 24), shape(1e-2, step / 24)])


@pytest.mark.parametrize("step", [1, 6, 23])
def test_an_interrupted_run_ends_in_the_same_bits(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = with_muon(ema=0.9, clip=1.0, accumulate=2)
    fit(whole, start(tmp_path / "whole"))
    run = start(tmp_path / "broken")

    def interrupt(training: Training) -> None:
        if training.step == step:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        after_each_step(patch, interrupt)
        with pytest.raises(InterruptedRunError):
            fit(with_muon(ema=0.9, clip=1.0, accumulate=2), run)
    resumed = with_muon(ema=0.9, clip=1.0, accumulate=2)
    fit(resumed, run)
    assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(resumed), strict=True))


def test_pieces_of_a_batch_add_up_to_it(tmp_path: Path) -> None:
    found = []
    for pieces in (1, 3):
        torch.manual_seed(7)
        model = nn.Sequential(nn.Linear(2, 8), MinMax(), nn.Linear(8, 6), MinMax(), nn.Linear(6, 2)).double()
        p = with_muon(model=model, accumulate=pieces)
        fit(p, start(tmp_path / str(pieces)))
        found.append(weights(p))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-8)


def test_a_stack_is_refused() -> None:
    with pytest.raises(InputError, match="Adam, AdamW or SGD"):
        check_stack([with_muon(), with_muon()])


def test_a_scaler_of_half_precision_leaves_it_whole() -> None:
    weight = nn.Parameter(torch.eye(3))
    optimizer = muon([weight])
    assert isinstance(optimizer, Muon)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale((weight * torch.tensor(float("inf"))).sum()).backward()
    scaler.step(optimizer)  # overflowed: left out
    assert torch.equal(weight, torch.eye(3))


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("lr=0", r"optimizer\.lr: expected a number > 0, got 0"),
        ("adam_lr=-1", r"optimizer\.adam_lr: expected a number > 0"),
        ("momentum=1", r"optimizer\.momentum: expected from 0 to below 1"),
        ("weight_decay=-1", r"optimizer\.weight_decay: expected a number >= 0"),
        ("head=1", r"optimizer\.head"),
    ],
)
def test_impossible_numbers_are_named(setting: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_recipe("cifar10-4c3f-cll", None, ["optimizer={name: muon}", f"optimizer.{setting}"]).check()
