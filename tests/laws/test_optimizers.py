"""What every registered optimiser obeys."""

from __future__ import annotations

import copy
import inspect
import io
from typing import Any

import pytest
import torch
from torch import nn

from lipcert import Bounded, InputError
from lipcert.losses import CLL
from lipcert.train.optimizers import OPTIMIZERS, optimizer_for

every_optimizer = pytest.mark.parametrize("name", list(OPTIMIZERS))
either_precision = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def network(dtype: torch.dtype = torch.float32) -> Bounded:
    torch.manual_seed(0)
    return Bounded(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3)).to(dtype), (2,))


def made(name: str, bounded: Bounded) -> torch.optim.Optimizer:
    def make(*given: Any, **named: Any) -> torch.optim.Optimizer:
        return OPTIMIZERS[name].constructor(*given, **named, **OPTIMIZERS[name].example)

    make.__signature__ = inspect.signature(OPTIMIZERS[name].constructor)  # type: ignore[attr-defined]
    return optimizer_for(bounded, make)


def steps(bounded: Bounded, optimizer: torch.optim.Optimizer, times: int) -> list[float]:
    """Train; return the loss before every step."""
    x = torch.randn(32, 2, generator=torch.Generator().manual_seed(1)).to(next(bounded.parameters()).dtype)
    labels, loss, found = (x[:, 0] > 0).long() + (x[:, 1] > 0).long(), CLL(eps=0.1, slack=0.25), []
    for _ in range(times):
        logits, lip = bounded(x)
        value = loss(logits, labels, lip).mean()
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        found.append(float(value.detach()))
    return found


@every_optimizer
@either_precision
def test_it_lowers_the_loss_of_a_small_model(name: str, dtype: torch.dtype) -> None:
    bounded = network(dtype)
    values = steps(bounded, made(name, bounded), 40)
    assert values[-1] < values[0]
    assert all(p.dtype == dtype for p in bounded.parameters())


@every_optimizer
@either_precision
def test_it_goes_downhill_without_a_matrix(name: str, dtype: torch.dtype) -> None:
    x = nn.Parameter(torch.ones(3, dtype=dtype))
    optimizer = OPTIMIZERS.create(name, parameters=[x], **OPTIMIZERS[name].example)
    for _ in range(20):
        optimizer.zero_grad()
        (x**2).sum().backward()
        optimizer.step()
    assert (x**2).sum() < 3


@every_optimizer
def test_it_resumes_to_the_bit(name: str) -> None:
    whole = network()
    optimizer = made(name, whole)
    steps(whole, optimizer, 3)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    resumed = copy.deepcopy(whole)
    other = made(name, resumed)
    other.load_state_dict(torch.load(file))
    steps(whole, optimizer, 3)
    steps(resumed, other, 3)
    for a, b in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(a, b)


@every_optimizer
@pytest.mark.parametrize("rate", [-1.0, 0.0, float("inf"), float("nan")])
def test_rates_that_are_not_above_zero_are_refused(name: str, rate: float) -> None:
    parameters = inspect.signature(OPTIMIZERS[name].constructor).parameters
    rates = [key for key in parameters if key == "lr" or key.endswith("_lr")]
    assert "lr" in rates
    for key in rates:
        with pytest.raises(InputError, match=f"{key}: expected a number > 0"):
            OPTIMIZERS.create(name, parameters=[nn.Parameter(torch.zeros(1))], **{key: rate})


@every_optimizer
def test_negative_weight_decay_is_refused(name: str) -> None:
    if "weight_decay" in inspect.signature(OPTIMIZERS[name].constructor).parameters:
        with pytest.raises(InputError, match="weight_decay: expected a number >= 0"):
            OPTIMIZERS.create(name, parameters=[nn.Parameter(torch.zeros(1))], weight_decay=-0.1)
