"""Attacks within a fixed eps: they stay inside it, and rounding costs them no success."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from lipcert import certifier
from lipcert.attack import attack
from lipcert.attack.projection import inside, reach
from lipcert.certificates.certificate import Rounding
from lipcert.data import Dataset
from lipcert.laws.unprotected import centred, unprotected

FIXED_EPS = ("margin", "pgd", "apgd-ce", "apgd-t")


@pytest.mark.parametrize("rounding", ["float64", "float32"])
@pytest.mark.parametrize("name", FIXED_EPS)
def test_rounding_costs_no_success(name: str, rounding: Rounding) -> None:
    """Points on the sphere used to be rounded to its outside, such as eps(1 + 1e-16), and did not count."""
    torch.manual_seed(0)
    model = centred(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 2))
    prover = certifier(model, (2,))
    data = Dataset(torch.randn(128, 2), torch.zeros(128).long(), ("a", "b"))
    band, wider = (
        attack(model, prover, data, [eps], "cpu", rounding, (name,)) for eps in (0.3, 0.3 * (1 + 1e-4))
    )
    found, counted = int(torch.isfinite(wider.nearest).sum()), int((band.nearest <= 0.3).sum())
    assert found >= 10
    assert found - counted <= 1  # one may be found only in the wider ball


@pytest.mark.parametrize("rounding", ["float64", "float32"])
@pytest.mark.parametrize("eps", [1e-7, 1e-3, 0.3, 2.0])
def test_points_are_pulled_inside_in_exact_arithmetic(eps: float, rounding: Rounding) -> None:
    target = unprotected(3, rounding)
    step = torch.randn(target.x.shape, generator=torch.Generator().manual_seed(0)).to(target.x)
    step /= torch.linalg.vector_norm(step, dim=1, keepdim=True)
    ball = replace(target, radius=torch.full((len(target),), eps).double())
    for factor in (0.5, 1.0, 1 + 1e-6, 10.0, torch.nan):
        points = inside(target, target.x + factor * eps * step, eps)
        assert all(ball._within(point, i) for i, point in enumerate(points))
        assert (points >= 0).all()
        assert (points <= 1).all()


@pytest.mark.parametrize("rounding", ["float64", "float32"])
def test_what_is_inside_stays_and_what_is_outside_ends_close_to_the_sphere(rounding: Rounding) -> None:
    target = replace(unprotected(3, rounding), bounds=(-10.0, 10.0))
    step = torch.full_like(target.x, 6**-0.5)
    near, far = target.x + 0.1 * step, target.x + 3.0 * step
    assert torch.equal(inside(target, near, 0.3), near)
    assert (target.distance(inside(target, far, 0.3)) > 0.3 * (1 - 1e-4)).all()
    assert 0.3 * (1 - 1e-4) < reach(target, 0.3) < 0.3
