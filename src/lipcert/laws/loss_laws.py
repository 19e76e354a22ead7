"""The laws of every loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor
from torch.func import grad, vmap

from lipcert.laws.law import DTYPES, BrokenLawError, described, expect, expect_close, laws_of_registry
from lipcert.losses import LOSSES, Loss
from lipcert.types import PairLip

LOSS_LAWS = laws_of_registry("losses", LOSSES, LOSSES.example)

Problem = tuple[Tensor, Tensor, PairLip]
_BATCH, _CLASSES, _FEATURES = 8, 5, 4

# Feature constants, from tiny to huge, at which gradients stay finite.
_CONSTANTS = {torch.float32: [2.0, 1e-19, 1e18], torch.float64: [2.0, 1e-150, 1e150]}


def problem(batch: int = _BATCH, classes: int = _CLASSES, dtype: torch.dtype = torch.float64) -> Problem:
    """Draw logits, labels and constants."""
    logits, labels = torch.randn(batch, classes, dtype=dtype), torch.randint(classes, (batch,))
    head = torch.randn(classes, _FEATURES, dtype=dtype)
    return logits, labels, PairLip(torch.tensor(2.0, dtype=dtype), head)


def objective(loss: Loss, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
    """Return what a training minimises."""
    return loss(logits, labels, lip).mean() + loss.penalty(lip)


def variants(loss: Loss) -> list[Loss]:
    """Return the loss, and with each of its switches the other way."""
    others = {"detach_constant": False, "sides": "one", "normaliser": "logit"}
    fields = {f.name for f in dataclasses.fields(loss)}
    return [loss, *(dataclasses.replace(loss, **{k: v}) for k, v in others.items() if k in fields)]


@LOSS_LAWS.add()
def every_sample_has_one_finite_value(loss: Loss) -> None:
    """Check the precision of the values, too, and that the penalty is a scalar."""
    for dtype in DTYPES:
        logits, labels, lip = problem(dtype=dtype)
        values, penalty = loss(logits, labels, lip), loss.penalty(lip)
        right = isinstance(values, Tensor) and values.shape == (_BATCH,) and values.dtype == dtype
        expect(right, f"values: expected {dtype} of shape ({_BATCH},), found {described(values)}")
        expect(torch.isfinite(values).all(), f"values: expected finite ones, found {values.tolist()}")
        expect(penalty.shape == (), f"penalty: expected a scalar, found {described(penalty)}")


@LOSS_LAWS.add()
def it_says_whether_a_sample_depends_on_no_other(loss: Loss) -> None:
    """Compare `sample_by_sample` with the values of a batch that is divided."""
    logits, labels, lip = problem(batch=9)
    pieces = zip(torch.split(logits, 3), torch.split(labels, 3), strict=True)
    divided = torch.cat([loss(f, y, lip) for f, y in pieces])
    alone = torch.allclose(divided, loss(logits, labels, lip), rtol=1e-12)
    if loss.sample_by_sample:
        expect(alone, "the value of a sample changes with the other samples, but sample_by_sample is True")
    else:
        expect(not alone, "no value changes with the other samples, but sample_by_sample is False")


@LOSS_LAWS.add()
def the_order_of_the_samples_does_not_matter(loss: Loss) -> None:
    """Compare values with those of the samples in another order."""
    logits, labels, lip = problem()
    order = torch.randperm(_BATCH)
    expect_close(
        loss(logits[order], labels[order], lip),
        loss(logits, labels, lip)[order],
        "values of samples in another order are others",
    )


@LOSS_LAWS.add()
def a_common_shift_of_the_logits_changes_nothing(loss: Loss) -> None:
    """Compare values before and after a shift; a loss may say that it is not `shift_invariant`."""
    for shift in torch.linspace(-50, 50, 41, dtype=torch.float64).tolist():
        logits, labels, lip = problem()
        here, there = loss(logits, labels, lip), loss(logits + shift, labels, lip)
        same = torch.allclose(here, there, rtol=1e-7, atol=1e-7)
        if loss.shift_invariant:
            expect(same, f"{shift:g} added to all logits changes values, but shift_invariant is True")
        else:
            expect(not same or shift == 0, "a common shift changes nothing, but shift_invariant is False")


@LOSS_LAWS.add()
def it_says_whether_it_uses_the_constants(loss: Loss) -> None:
    """Compare `uses_constants` with what other constants do to the objective."""
    logits, labels, lip = problem()
    twice = PairLip(2 * lip.features, lip.head)
    differs = bool(objective(loss, logits, labels, lip) != objective(loss, logits, labels, twice))
    found = "changes" if differs else "does not change"
    expect(
        loss.uses_constants == differs,
        f"the objective {found} with the constants, but uses_constants is {loss.uses_constants}",
    )


@LOSS_LAWS.add()
def the_names_of_the_classes_do_not_matter(loss: Loss) -> None:
    """Compare values with those of classes in another order, with their labels and constants."""
    logits, labels, lip = problem()
    order = torch.randperm(_CLASSES)
    place = torch.empty_like(order)
    place[order] = torch.arange(_CLASSES)
    renamed = loss(logits[:, order], place[labels], PairLip(lip.features, lip.head[order]))
    expect_close(renamed, loss(logits, labels, lip), "values change when the classes are numbered otherwise")


@LOSS_LAWS.add()
def the_gradient_is_that_of_the_values(loss: Loss) -> None:
    """Compare gradients with finite differences; a loss may say that it holds parts fixed in them."""
    logits, labels, lip = problem()
    for variant in variants(loss):
        parts = {
            "the logits": (logits, lambda f, one=variant: objective(one, f, labels, lip)),
            "the head": (
                lip.head,
                lambda w, one=variant: objective(one, logits, labels, PairLip(lip.features, w)),
            ),
            "the constant": (
                lip.features,
                lambda k, one=variant: objective(one, logits, labels, PairLip(k, lip.head)),
            ),
        }
        kept = list(parts)[:1] if getattr(variant, "detach_constant", False) else list(parts)
        errors = {part: gradient_error(parts[part][1], parts[part][0]) for part in kept}
        _expect_exact(loss, errors)


def _expect_exact(loss: Loss, errors: dict[str, str]) -> None:
    wrong = [f"the gradient to {part} {error}" for part, error in errors.items() if error]
    if loss.exact_gradient:
        expect(not wrong, "; ".join(wrong))
    else:
        expect(bool(wrong), "the gradient is that of the values, but exact_gradient is False")


def gradient_error(function: Callable[[Tensor], Tensor], x: Tensor) -> str:
    """Compare the gradient of a scalar function along a random direction with finite differences.

    Nothing is returned if they agree, otherwise half a sentence.
    """
    point = x.clone().requires_grad_()
    value = function(point)
    gradient = torch.zeros_like(x)
    if value.requires_grad:
        (gradient,) = torch.autograd.grad(value, point, allow_unused=True, materialize_grads=True)
    direction = torch.randn_like(x)
    step = 1e-6 / max(1.0, float(direction.norm()))
    with torch.no_grad():
        ahead, behind = (float(function(x + sign * step * direction)) for sign in (1, -1))
    found, expected = float((gradient * direction).sum()), (ahead - behind) / (2 * step)
    scale = max(abs(expected), float(gradient.norm() * direction.norm()), abs(ahead) * 1e-3, 1e-6)
    if abs(found - expected) <= 1e-4 * scale:
        return ""
    return f"says {found:g} along a direction where finite differences say {expected:g}"


@LOSS_LAWS.add()
def gradients_are_finite_wherever_the_logits_are(loss: Loss) -> None:
    """Check logits up to the largest number, equal and zero rows, tiny and huge constants."""
    for dtype, rows in product(DTYPES, ("random", "equal", "zero")):
        largest = torch.finfo(dtype).max
        for size in (0.0, 1e-30, 1.0, 1e10, 1e30, largest / 2, largest):
            logits, labels, lip = problem(dtype=dtype)
            head = {"random": lip.head, "equal": lip.head[:1].expand(_CLASSES, -1), "zero": 0 * lip.head}
            f, w = (size * logits.sign()).requires_grad_(), head[rows].clone().requires_grad_()
            for variant, constant in product(variants(loss), _CONSTANTS[dtype]):
                k = torch.tensor(constant, dtype=dtype, requires_grad=True)
                total = objective(variant, f, labels, PairLip(k, w))
                where = f"at logits of size {size:g}, {rows} rows and constant {constant:g} in {dtype}"
                _expect_finite(torch.autograd.grad(total, [f, w, k], allow_unused=True), where)


def _expect_finite(gradients: tuple[Tensor | None, ...], where: str) -> None:
    for gradient in gradients:
        finite = gradient is None or bool(torch.isfinite(gradient).all())
        expect(finite, f"gradients: expected finite ones, found others {where}")


@LOSS_LAWS.add()
def it_runs_on_the_meta_device(loss: Loss) -> None:
    """Check that it does nothing that only a CPU can do, and reads no value."""
    logits, labels, lip = problem(dtype=torch.float32)
    nowhere = PairLip(lip.features.to("meta"), lip.head.to("meta"))
    values = objective(loss, logits.to("meta"), labels.to("meta"), nowhere)
    expect(values.device.type == "meta", f"expected a value on the meta device, found {values.device}")


@LOSS_LAWS.add()
def two_models_train_in_one_vmapped_step(loss: Loss) -> None:
    """Compare gradients with those of two single steps; data, constants and numbers differ."""
    problems = [problem(), problem()]
    logits, labels = torch.stack([p[0] for p in problems]), torch.stack([p[1] for p in problems])
    features, head = (torch.stack([p[2][i] for p in problems]) for i in (0, 1))
    names = (f.name for f in dataclasses.fields(loss) if isinstance(getattr(loss, f.name), float))
    numbers = {n: torch.tensor([1.0, 1.5], dtype=torch.float64) * getattr(loss, n) for n in names}

    def step(f: Tensor, y: Tensor, k: Tensor, w: Tensor, values: dict[str, Tensor]) -> Tensor:
        return objective(dataclasses.replace(loss, **values), f, y, PairLip(k, w))

    gradients = vmap(grad(step, argnums=(0, 3)))(logits, labels, features, head, numbers)
    for i, one in enumerate(problems):
        single = dataclasses.replace(loss, **{k: float(v[i]) for k, v in numbers.items()})
        for together, alone in zip(gradients, _gradients(single, one), strict=True):
            expect_close(together[i], alone, "gradients of two models in one step are not those of two steps")


def _gradients(loss: Loss, one: Problem) -> tuple[Tensor, ...]:
    """Return the gradients to logits and head."""
    logits, labels, lip = one
    f, w = logits.clone().requires_grad_(), lip.head.clone().requires_grad_()
    total = objective(loss, f, labels, PairLip(lip.features, w))
    return torch.autograd.grad(total, [f, w], allow_unused=True, materialize_grads=True)


@LOSS_LAWS.add()
def hyper_parameters_are_frozen(loss: Loss) -> None:
    """Check that a loss is a value: a schedule replaces it, and nothing changes it."""
    try:
        loss.eps = 1.0  # type: ignore[attr-defined]
    except dataclasses.FrozenInstanceError:
        return
    raise BrokenLawError(f"expected {type(loss).__name__} to be decorated with @dataclass(frozen=True)")


@LOSS_LAWS.add()
def an_empty_piece_has_no_values_and_no_gradient(loss: Loss) -> None:
    """Evaluate no samples, as a process does whose share of a small batch is empty."""
    for variant, is_local in product(variants(loss), (False, True)):
        logits, labels, lip = problem(batch=0)
        features = lip.features.expand(0) if is_local else lip.features
        f, w, k = (t.clone().requires_grad_() for t in (logits, lip.head, features))
        values = variant(f, labels, PairLip(k, w))
        expect(values.shape == (0,), f"expected no values for no samples, found {described(values)}")
        gradients = torch.autograd.grad(values.sum(), [f, w, k], allow_unused=True, materialize_grads=True)
        expect(all(bool((g == 0).all()) for g in gradients), "no samples give a gradient that is not 0")
