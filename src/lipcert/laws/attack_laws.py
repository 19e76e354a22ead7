"""The laws of every attack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import torch
from torch import Tensor, nn

from lipcert.attack import ATTACKS, BUDGETS, Attack, WithinEps
from lipcert.attack.target import Target
from lipcert.certificates.certificate import Rounding
from lipcert.certificates.certifier import certifier
from lipcert.laws.law import described, expect, laws_of_registry
from lipcert.laws.unprotected import BOUNDS, centred, unprotected

ATTACK_LAWS = laws_of_registry("attacks", ATTACKS, ATTACKS.example)

RADII = (0.05, 0.2)
_CLAIMS: list[Rounding] = [r for r in get_args(Rounding) if r != "ignored"]


def points_of(attack: Attack, target: Target) -> list[Tensor]:
    """Return every set of points that the attack finds with a small budget."""
    return list(attack.sets(target, RADII, BUDGETS["smoke"]))


def _targets() -> Iterator[Target]:
    return (unprotected(5, rounding) for rounding in _CLAIMS)


@ATTACK_LAWS.add()
def points_are_inputs_of_the_network(attack: Attack) -> None:
    """Check shape and precision, and that points are finite and without a graph."""
    for target in _targets():
        for points in points_of(attack, target):
            right = points.shape == target.x.shape and points.dtype == target.x.dtype
            expect(right, f"points: expected {described(target.x)}, found {described(points)}")
            expect(torch.isfinite(points).all(), "points: expected finite ones, found NaN or infinity")
            expect(not points.requires_grad, "points: expected no graph; detach them")


def _promises_nothing(attack: Attack) -> str:
    return "" if isinstance(attack, WithinEps) else "only attacks within a given eps promise to stay there"


@ATTACK_LAWS.add(exempt=_promises_nothing)
def its_points_stay_within_eps_in_exact_arithmetic(attack: Attack) -> None:
    """Measure the last sets, one per radius; points lie within the bounds of the inputs as well."""
    for target in _targets():
        for eps, points in zip(RADII, points_of(attack, target)[-len(RADII) :], strict=True):
            outside = ~target.inside(points, eps)
            farthest = float(target.distance(points).max())
            expect(
                not outside.any(),
                f"{int(outside.sum())} points leave the ball: distance up to {farthest:g} for eps {eps:g}",
            )
            low, high = target.bounds
            allowed = ((points >= low) & (points <= high)).all()
            expect(allowed, f"points: expected entries between {low:g} and {high:g}, found others")


@ATTACK_LAWS.add()
def it_breaks_certificates_that_are_too_large_and_no_others(attack: Attack) -> None:
    """Attack a linear network, with radii as they are proved and three times as large."""
    torch.manual_seed(0)
    model = centred(nn.Linear(6, 5))
    honest = Target.of(model, certifier(model, (6,)), torch.rand(64, 6), "float64", BOUNDS)
    expect(_breaks(attack, honest) == 0, "it reports proved certificates as broken")
    broken = _breaks(attack, replace(honest, radius=3 * honest.radius))
    expect(broken > 0, "it breaks no certificate whose radius is three times too large")


def _breaks(attack: Attack, target: Target) -> int:
    return sum(int(target.broken(points).sum()) for points in points_of(attack, target))


@ATTACK_LAWS.add()
def it_repeats_itself_and_leaves_the_random_state_alone(attack: Attack) -> None:
    """Search twice; random numbers come from a generator of its own with a fixed seed."""
    target = unprotected(5)
    state = torch.get_rng_state()
    first, second = points_of(attack, target), points_of(attack, target)
    untouched = torch.equal(torch.get_rng_state(), state)
    expect(untouched, "it draws from torch's global random numbers; use a generator of its own")
    same = all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    expect(same, "two searches from the same samples find other points")
