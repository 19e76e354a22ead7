"""What every registered attack obeys."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from lipcert import certifier
from lipcert.attack import ATTACKS, BUDGETS, WithinEps, attack
from lipcert.certificates import proved_model
from lipcert.certificates.certificate import Rounding
from lipcert.data import Dataset
from tests.attack.samples import centred, unprotected

# Attacks whose laws are in the slow suite, and why.
SLOW = {"brendel-bethge": "numba compiles it for a minute"}
RADII = (0.05, 0.2)


every_attack = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in ATTACKS]
)
either_precision = pytest.mark.parametrize("rounding", ["float64", "float32"])


def points_of(name: str, rounding: Rounding = "float64") -> list[Tensor]:
    return list(ATTACKS.create(name).sets(unprotected(5, rounding), RADII, BUDGETS["smoke"]))


@every_attack
@either_precision
def test_points_are_inputs_of_the_network(name: str, rounding: Rounding) -> None:
    target = unprotected(5, rounding)
    for points in points_of(name, rounding):
        assert points.shape == target.x.shape
        assert points.dtype == target.x.dtype
        assert torch.isfinite(points).all()
        assert not points.requires_grad


@every_attack
@either_precision
def test_an_attack_within_eps_stays_there_in_exact_arithmetic(name: str, rounding: Rounding) -> None:
    if not isinstance(ATTACKS.create(name), WithinEps):
        return  # it promises nothing
    target = unprotected(5, rounding)
    # Perhaps after sets of another kind comes one per radius.
    for eps, points in zip(RADII, points_of(name, rounding)[-len(RADII) :], strict=True):
        ball = replace(target, radius=torch.full((len(target),), eps).double())
        assert all(ball._within(point, i) for i, point in enumerate(points))
        low, high = target.bounds
        assert ((points >= low) & (points <= high)).all()


@every_attack
def test_it_breaks_certificates_that_are_too_large_and_no_others(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model = centred(nn.Linear(6, 5))
    data = Dataset(torch.rand(64, 6), torch.arange(64) % 5, tuple("abcde"))

    def broken() -> list[int]:
        return attack(model, certifier(model, (6,)), data, RADII, "smoke", attacks=(name,)).broken

    assert broken() == []
    real = proved_model._product_up
    monkeypatch.setattr(proved_model, "_product_up", lambda spread, k: real(spread, k) / 3)
    assert broken()


@every_attack
def test_it_repeats_itself_and_leaves_the_random_state_alone(name: str) -> None:
    target = unprotected(5)
    state = torch.get_rng_state()
    first, second = (list(ATTACKS.create(name).sets(target, RADII, BUDGETS["smoke"])) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
