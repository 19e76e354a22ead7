"""What every registered loss obeys."""

from __future__ import annotations

import dataclasses
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.func import grad, vmap

from lipcert import InputError, PairLip
from lipcert.losses import LOSSES, Loss

every_loss = pytest.mark.parametrize("name", list(LOSSES))
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def problem(
    batch: int = 8, classes: int = 5, features: int = 4, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, PairLip]:
    logits = torch.randn(batch, classes, dtype=dtype)
    labels = torch.randint(classes, (batch,))
    return (
        logits,
        labels,
        PairLip(torch.tensor(2.0, dtype=dtype), torch.randn(classes, features, dtype=dtype)),
    )


def objective(loss: Loss, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
    return loss(logits, labels, lip).mean() + loss.penalty(lip)


@every_dtype
@every_loss
def test_one_value_a_sample(name: str, dtype: torch.dtype) -> None:
    logits, labels, lip = problem(dtype=dtype)
    values = LOSSES.example(name)(logits, labels, lip)
    assert values.shape == (8,)
    assert values.dtype == dtype
    assert torch.isfinite(values).all()
    assert LOSSES.example(name).penalty(lip).shape == ()


@every_loss
def test_a_loss_says_whether_a_sample_depends_on_no_other(name: str) -> None:
    logits, labels, lip = problem(batch=9)
    loss = LOSSES.example(name)
    pieces = zip(logits.split(3), labels.split(3), strict=True)
    divided = torch.cat([loss(f, y, lip) for f, y in pieces])
    assert loss.sample_by_sample == torch.allclose(divided, loss(logits, labels, lip), rtol=1e-12)


@every_loss
@given(shift=st.floats(-50, 50))
def test_a_common_shift_of_the_logits_changes_nothing(name: str, shift: float) -> None:
    torch.manual_seed(0)
    logits, labels, lip = problem()
    loss = LOSSES.example(name)
    here, there = loss(logits, labels, lip), loss(logits + shift, labels, lip)
    same = torch.allclose(here, there, rtol=1e-7, atol=1e-7)
    assert same == loss.shift_invariant or abs(shift) < 1e-3
    assert same or not loss.shift_invariant


@every_loss
def test_a_loss_says_whether_it_uses_the_constants(name: str) -> None:
    logits, labels, lip = problem()
    loss, twice = LOSSES.example(name), PairLip(2 * lip.features, lip.head)
    assert loss.uses_constants == bool(
        objective(loss, logits, labels, lip) != objective(loss, logits, labels, twice)
    )


@every_loss
def test_the_names_of_the_classes_do_not_matter(name: str) -> None:
    logits, labels, lip = problem()
    order = torch.randperm(5)
    place = torch.empty_like(order)
    place[order] = torch.arange(5)
    loss = LOSSES.example(name)
    renamed = loss(logits[:, order], place[labels], PairLip(lip.features, lip.head[order]))
    torch.testing.assert_close(renamed, loss(logits, labels, lip))


@every_dtype
@every_loss
def test_gradients_are_finite_wherever_the_logits_are(name: str, dtype: torch.dtype) -> None:
    largest = torch.finfo(dtype).max
    for size in (0.0, 1e-30, 1.0, 1e10, 1e30, largest / 2, largest):
        for rows in ("random", "equal", "zero"):
            logits, labels, lip = problem(dtype=dtype)
            head = {"random": lip.head, "equal": lip.head[:1].expand(5, -1), "zero": 0 * lip.head}[rows]
            f = (size * logits.sign()).requires_grad_()
            w = head.clone().requires_grad_()
            for loss, constant in product(variants(LOSSES.example(name)), CONSTANTS[dtype]):
                k = torch.tensor(constant, dtype=dtype, requires_grad=True)
                gradients = torch.autograd.grad(
                    objective(loss, f, labels, PairLip(k, w)), [f, w, k], allow_unused=True
                )
                for g in gradients:
                    assert g is None or torch.isfinite(g).all(), (size, rows, loss)


CONSTANTS = {torch.float32: [2.0, 1e-19, 1e18], torch.float64: [2.0, 1e-150, 1e150]}


def variants(loss: Loss) -> list[Loss]:
    """The loss with each of its switches the other way."""
    others = {"detach_constant": False, "sides": "one", "normaliser": "logit"}
    fields = {f.name for f in dataclasses.fields(loss)}
    return [loss, *(dataclasses.replace(loss, **{k: v}) for k, v in others.items() if k in fields)]


@every_loss
def test_it_runs_on_the_meta_device(name: str) -> None:
    logits, labels, lip = problem(dtype=torch.float32)
    nowhere = PairLip(lip.features.to("meta"), lip.head.to("meta"))
    values = objective(LOSSES.example(name), logits.to("meta"), labels.to("meta"), nowhere)
    assert values.device.type == "meta"


@every_loss
def test_two_models_train_in_one_vmapped_step(name: str) -> None:
    """Different data, constants and numbers; the gradients are those of two single steps."""
    problems = [problem(), problem()]
    logits, labels = (torch.stack([p[i] for p in problems]) for i in (0, 1))
    features, head = (torch.stack([p[2][i] for p in problems]) for i in (0, 1))
    example = LOSSES.example(name)
    numbers = {
        f.name: torch.tensor([1.0, 1.5], dtype=torch.float64) * getattr(example, f.name)
        for f in dataclasses.fields(example)
        if isinstance(getattr(example, f.name), float)
    }

    def step(f: Tensor, y: Tensor, k: Tensor, w: Tensor, values: dict[str, Tensor]) -> Tensor:
        return objective(dataclasses.replace(example, **values), f, y, PairLip(k, w))

    gradients = vmap(grad(step, argnums=(0, 3)))(logits, labels, features, head, numbers)
    for i, (f, y, lip) in enumerate(problems):
        single = dataclasses.replace(example, **{k: float(v[i]) for k, v in numbers.items()})
        f, w = f.clone().requires_grad_(), lip.head.clone().requires_grad_()
        alone = torch.autograd.grad(
            objective(single, f, y, PairLip(lip.features, w)),
            [f, w],
            allow_unused=True,
            materialize_grads=True,
        )
        for together, one in zip(gradients, alone, strict=True):
            torch.testing.assert_close(together[i], one)


@every_loss
def test_bad_arguments_are_named(name: str) -> None:
    loss = LOSSES.example(name)
    logits, labels, lip = problem()
    with pytest.raises(InputError, match=r"labels: expected 0\.\.4, got 5"):
        loss(logits, torch.full_like(labels, 5), lip)
    with pytest.raises(InputError, match=r"labels: expected 0\.\.4, got -100"):
        loss(logits, torch.full_like(labels, -100), lip)
    with pytest.raises(InputError, match=r"labels: expected shape \(8,\)"):
        loss(logits, labels[:3], lip)
    for wrong in (labels.float(), labels.int(), labels.byte()):
        with pytest.raises(InputError, match="int64"):
            loss(logits, wrong, lip)
    with pytest.raises(InputError, match=r"logits: expected shape"):
        loss(logits[:, :1], labels * 0, lip)
    with pytest.raises(InputError, match="head rows"):
        loss(logits, labels, PairLip(lip.features, lip.head[:3]))
    with pytest.raises(InputError, match="head rows"):
        loss(logits, labels, PairLip(lip.features, lip.head[:, 0]))
    with pytest.raises(InputError, match="feature constant"):
        loss(logits, labels, PairLip(lip.features.expand(3), lip.head))


@every_loss
def test_hyper_parameters_are_frozen(name: str) -> None:
    loss = LOSSES.example(name)
    with pytest.raises(dataclasses.FrozenInstanceError):
        loss.eps = 1.0  # type: ignore[attr-defined]


@every_loss
@pytest.mark.parametrize("local", [False, True])
def test_an_empty_piece_has_no_values_and_no_gradient(name: str, local: bool) -> None:
    """A process gets no sample of a batch that is smaller than the number of processes."""
    for loss in variants(LOSSES.example(name)):
        logits, labels, lip = problem(batch=0)
        features = lip.features.expand(0) if local else lip.features
        f, w, k = (t.clone().requires_grad_() for t in (logits, lip.head, features))
        values = loss(f, labels, PairLip(k, w))
        assert values.shape == (0,)
        gradients = torch.autograd.grad(values.sum(), [f, w, k], allow_unused=True, materialize_grads=True)
        assert all((g == 0).all() for g in gradients)
