"""The laws of every optimiser."""

from __future__ import annotations

import copy
import inspect
import io
from typing import Any

import torch
from torch import nn

from lipcert.bounds import Bounded
from lipcert.errors import InputError
from lipcert.laws.law import DTYPES, BrokenLawError, expect, laws_of_registry
from lipcert.losses import CLL
from lipcert.registry import Entry
from lipcert.train.optimizers import OPTIMIZERS, optimizer_for

Optimizer = Entry[torch.optim.Optimizer]

OPTIMIZER_LAWS = laws_of_registry("optimizers", OPTIMIZERS, OPTIMIZERS.__getitem__)

# Rates that no optimiser may take.
_IMPOSSIBLE = (-1.0, 0.0, float("inf"), float("nan"))


def network(dtype: torch.dtype = torch.float32) -> Bounded:
    """Return a small network."""
    torch.manual_seed(0)
    return Bounded(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3)).to(dtype), (2,))


def _made(entry: Optimizer, bounded: Bounded) -> torch.optim.Optimizer:
    """Make the example for a network, which may hand over its head."""

    def make(*given: Any, **named: Any) -> torch.optim.Optimizer:
        return entry.constructor(*given, **named, **entry.example)

    make.__signature__ = inspect.signature(entry.constructor)  # type: ignore[attr-defined]
    return optimizer_for(bounded, make)


def _steps(bounded: Bounded, optimizer: torch.optim.Optimizer, times: int) -> list[float]:
    """Train; return the loss before every step."""
    x = torch.randn(32, 2, generator=torch.Generator().manual_seed(1)).to(next(bounded.parameters()).dtype)
    labels, loss, found = (x[:, 0] > 0).long() + (x[:, 1] > 0).long(), CLL(eps=0.1, slack=0.25), []
    for _ in range(times):
        logits, lip = bounded(x)
        value = loss(logits, labels, lip).mean()
        optimizer.zero_grad()
        torch.autograd.backward(value)
        optimizer.step()
        found.append(float(value.detach()))
    return found


@OPTIMIZER_LAWS.add()
def it_lowers_the_loss_of_a_small_model(entry: Optimizer) -> None:
    """Train for 40 steps, in either precision."""
    for dtype in DTYPES:
        bounded = network(dtype)
        values = _steps(bounded, _made(entry, bounded), 40)
        expect(
            values[-1] < values[0], f"40 steps take the loss from {values[0]:g} to {values[-1]:g} in {dtype}"
        )
        kept = all(p.dtype == dtype for p in bounded.parameters())
        expect(kept, f"weights are no longer in {dtype}")


@OPTIMIZER_LAWS.add()
def it_goes_downhill_without_a_matrix(entry: Optimizer) -> None:
    """Move a vector of parameters."""
    for dtype in DTYPES:
        x = nn.Parameter(torch.ones(3, dtype=dtype))
        optimizer = OPTIMIZERS.create(entry.name, parameters=[x], **entry.example)
        for _ in range(20):
            optimizer.zero_grad()
            torch.autograd.backward((x**2).sum())
            optimizer.step()
        value = float((x.detach() ** 2).sum())
        expect(value < 3, f"20 steps take x·x from 3 to {value:g} in {dtype}")


@OPTIMIZER_LAWS.add()
def it_resumes_to_the_bit(entry: Optimizer) -> None:
    """Compare weights after a stop with those without one; its state goes through a file."""
    whole = network()
    optimizer = _made(entry, whole)
    _steps(whole, optimizer, 3)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    resumed = copy.deepcopy(whole)
    other = _made(entry, resumed)
    other.load_state_dict(torch.load(file))
    _steps(whole, optimizer, 3)
    _steps(resumed, other, 3)
    same = all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True))
    expect(same, "three steps with the state from a file give other weights than three steps without a stop")


@OPTIMIZER_LAWS.add()
def rates_that_are_not_above_zero_are_refused(entry: Optimizer) -> None:
    """Check that one line names the rate, as `check_rates` does."""
    parameters = inspect.signature(entry.constructor).parameters
    rates = [key for key in parameters if key == "lr" or key.endswith("_lr")]
    expect("lr" in rates, "expected an argument lr, found none")
    for key in rates:
        for rate in _IMPOSSIBLE:
            _expect_refused(entry, key, rate, f"{key}: expected a number > 0")


@OPTIMIZER_LAWS.add()
def negative_weight_decay_is_refused(entry: Optimizer) -> None:
    """Check that one line names it, if there is weight decay."""
    if "weight_decay" in inspect.signature(entry.constructor).parameters:
        _expect_refused(entry, "weight_decay", -0.1, "weight_decay: expected a number >= 0")


def _expect_refused(entry: Optimizer, key: str, value: float, said: str) -> None:
    try:
        OPTIMIZERS.create(entry.name, parameters=[nn.Parameter(torch.zeros(1))], **{key: value})
    except ValueError as error:
        right = isinstance(error, InputError) and said in str(error)
        expect(
            right, f"expected the error {said!r}, found {str(error)!r}; call check_rates(lr, weight_decay)"
        )
        return
    raise BrokenLawError(f"{key}={value:g} is accepted; call check_rates(lr, weight_decay)")
