"""The formulas of schedules."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from lipcert import InputError
from lipcert.train.schedules.linear import Linear
from lipcert.train.schedules.logarithmic import Logarithmic
from lipcert.train.schedules.multistep import MultiStep
from lipcert.train.schedules.one_cycle import OneCycle
from lipcert.train.schedules.polynomial import Polynomial
from lipcert.train.schedules.trapezoid import Trapezoid
from lipcert.train.schedules.triangular import Triangular


def test_polynomial_is_equation_19() -> None:
    schedule = Polynomial(end=1e-12, gamma=50)
    assert schedule(1e-3, 0.0) == 1e-3
    assert schedule(1e-3, 1.0) == 1e-12
    assert schedule(1e-3, 0.25) == pytest.approx(1e-12 + (1e-3 - 1e-12) * 0.75**50, rel=1e-14)


def test_multistep_falls_exactly_at_its_fractions() -> None:
    schedule = MultiStep(at=[0.4], factor=0.1)
    total = 20_000
    values = [schedule(1.0, step / total) for step in range(total)]
    assert values.index(0.1) == 8000


def test_logarithmic_is_gloros() -> None:
    eps, t = 0.15, 0.3
    expected = math.log((math.exp(eps) - math.exp(0.01 * eps)) * t + math.exp(0.01 * eps))
    assert Logarithmic()(eps, t) == expected
    assert Logarithmic()(eps, 0.0) == pytest.approx(0.01 * eps)
    assert Logarithmic()(eps, 1.0) == eps  # the very number, which the formula misses by rounding


def test_triangular_has_the_knots_of_the_paper() -> None:
    schedule = Triangular()
    assert [schedule(2.0, t) for t in (0.0, 0.4, 0.8, 1.0)] == pytest.approx([0, 2, 0.1, 0])


def test_trapezoid_rises_stays_and_falls() -> None:
    shape = Trapezoid(rise=0.2, fall=0.6)
    assert [round(shape(10.0, t), 9) for t in (0.0, 0.1, 0.2, 0.5, 0.6, 0.8, 1.0)] == [0, 5, 10, 10, 10, 5, 0]


def test_one_cycle_is_that_of_torch() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    reference = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1.0, total_steps=101, final_div_factor=400, div_factor=25
    )
    schedule = OneCycle(peak=(0.3 * 101 - 1) / 100, divide=25, final=1e4)
    for step in range(101):
        assert schedule(1.0, step / 100) == pytest.approx(reference.get_last_lr()[0], rel=1e-9)
        optimizer.step()
        if step < 100:
            reference.step()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Linear(1.0, until=0.0),
        lambda: MultiStep([400]),
        lambda: Triangular(0.9, 0.8),
        lambda: Trapezoid(0.5, 0.4),
    ],
)
def test_impossible_schedules_are_refused(make) -> None:
    with pytest.raises(InputError):
        make()
