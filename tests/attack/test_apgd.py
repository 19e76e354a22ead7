"""AutoAttack's gradient attacks: they succeed where they should, and leave alone what they cannot change."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from lipcert import certifier
from lipcert.attack import BUDGETS
from lipcert.attack.apgd_ce import APGDCE
from lipcert.attack.apgd_t import APGDT
from lipcert.attack.base import Budget
from lipcert.attack.target import Target
from lipcert.certificates.certificate import Rounding
from lipcert.laws.unprotected import BOUNDS, small_network, unprotected


def apgd_ce(target: Target, eps: float, steps: int) -> Tensor:
    return APGDCE().within(target, eps, Budget(0, steps, 0, 0))


def apgd_t(target: Target, eps: float, steps: int, classes: int) -> Tensor:
    return APGDT().within(target, eps, Budget(0, steps, 0, classes))


@pytest.mark.parametrize("rounding", ["float64", "float32"])
@pytest.mark.parametrize("classes", [1, 2, 3, 4, 12])
def test_auto_pgd_breaks_an_unprotected_network(classes: int, rounding: Rounding) -> None:
    """One logit, fewer classes than the DLR loss needs, just enough, and more than are aimed at."""
    target = unprotected(classes, rounding)
    for points in (apgd_ce(target, 0.5, 20), apgd_t(target, 0.5, 20, 9)):
        flipped = target.flipped(points)
        assert points.dtype == target.x.dtype
        assert flipped.sum() >= 5
        assert torch.equal(points[~flipped], target.x[~flipped])
        assert (target.distance(points) <= 0.5 + 1e-6).all()


def test_aiming_at_more_classes_finds_more() -> None:
    target = unprotected(12)
    one, nine = (int(target.flipped(apgd_t(target, 0.1, 20, classes)).sum()) for classes in (1, 9))
    assert one < nine


def test_auto_pgd_finds_the_same_in_any_units() -> None:
    """It searches the unit cube, and is told how large a unit is."""
    model = small_network(5)
    units = nn.Linear(6, 6)
    wide = nn.Sequential(units, *small_network(5))
    with torch.no_grad():
        units.weight.copy_(torch.eye(6) / 8)
        units.bias.fill_(0.5)
    x = torch.rand(64, 6)
    small = Target.of(model, certifier(model, (6,)), x, "float64", BOUNDS)
    large = Target.of(wide, certifier(wide, (6,)), 8 * x - 4, "float64", (-4.0, 4.0))
    for search in (apgd_ce, lambda *given: apgd_t(*given, 4)):
        found, scaled = search(small, 0.1, 10), search(large, 0.8, 10)
        assert small.flipped(found).any()
        assert torch.allclose(scaled, 8 * found - 4, atol=1e-9)


def test_auto_pgd_leaves_the_random_state_alone_and_repeats_itself() -> None:
    target = unprotected(5)
    state = torch.get_rng_state()
    first, second = apgd_ce(target, 0.3, 5), apgd_ce(target, 0.3, 5)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first, second)


def flat(logits: Tensor) -> nn.Module:
    model = nn.Linear(3, len(logits))
    nn.init.zeros_(model.weight)
    model.bias.data = logits
    return model


@pytest.mark.parametrize("logits", [torch.tensor([1.0, 0.0, 0.0, 0.0]), torch.zeros(5)])
def test_auto_pgd_without_a_gradient_returns_the_samples(logits: Tensor) -> None:
    """A constant network, and one whose classes all tie."""
    model = flat(logits)
    target = Target.of(model, certifier(model, (3,)), torch.rand(4, 3), "float64", BOUNDS)
    assert torch.equal(apgd_ce(target, 0.3, 5), target.x)
    assert torch.equal(apgd_t(target, 0.3, 5, 9), target.x)


def test_targeted_attacks_aim_at_as_many_classes_as_autoattack() -> None:
    assert BUDGETS["full"].classes == 9
