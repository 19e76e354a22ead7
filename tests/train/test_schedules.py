"""The formulas of schedules."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from lipcert import InputError
from lipcert.losses import CLL, CrossEntropy
from lipcert.train.schedule_checks import check_schedules
from lipcert.train.schedules import Schedule
from lipcert.train.schedules.cosine import Cosine
from lipcert.train.schedules.linear import Linear
from lipcert.train.schedules.logarithmic import Logarithmic
from lipcert.train.schedules.multistep import MultiStep
from lipcert.train.schedules.one_cycle import OneCycle
from lipcert.train.schedules.polynomial import Polynomial
from lipcert.train.schedules.ramp import Ramp
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


def test_a_ramp_rises_from_its_first_part_to_the_value() -> None:
    ramp = Ramp(first=0.25, until=0.5)
    assert [ramp(8.0, t) for t in (0.0, 0.25, 0.5, 1.0)] == [2.0, 5.0, 8.0, 8.0]


def test_a_line_is_kept_at_its_end() -> None:
    assert [Linear(end=2.0, until=0.5)(1.0, t) for t in (0.0, 0.25, 0.5, 1.0)] == [1.0, 1.5, 2.0, 2.0]


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


@pytest.mark.parametrize(
    ("key", "schedule", "said"),
    [
        ("loss.eps", Linear(end=0.0), "schedule.loss.eps: is impossible at the end (eps: expected"),
        ("loss.eps", Cosine(), "schedule.loss.eps: is impossible at the end (eps: expected"),
        ("loss.eps", Ramp(), "schedule.loss.eps: is impossible at the start (eps: expected"),
        ("loss.slack", Linear(end=0.7, until=0.5), "schedule.loss.slack: is impossible at fraction 0.5 of"),
        ("loss.eps", Triangular(low=-1.0), "schedule.loss.eps: is impossible at the start"),
        (
            "optimizer.lr",
            Linear(end=-0.1),
            "schedule.optimizer.lr: expected a number >= 0 at the end, got -0.1",
        ),
        ("optimizer.lr", Triangular(low=-1.0), "expected a number >= 0 at fraction 0.8 of the training"),
        ("optimizer.lr", MultiStep(at=[0.5], factor=math.inf), "expected a number >= 0 at fraction 0.5"),
        ("optimizer.lr", Polynomial(end=0.1, gamma=-1.0), "schedule.optimizer.lr: has no value at the end"),
        ("optimizer.lr", OneCycle(final=0.0), "schedule.optimizer.lr: has no value at the end"),
    ],
)
def test_an_impossible_value_is_noticed_before_the_first_step(
    key: str, schedule: Schedule, said: str
) -> None:
    loss = CLL(eps=0.1, slack=0.1)
    check_schedules(loss, {"lr": 0.1}, {"optimizer.lr": Cosine(), "loss.slack": Linear(end=0.2)})
    with pytest.raises(InputError, match=re.escape(said)):
        check_schedules(loss, {"lr": 0.1}, {key: schedule})


def test_numbers_that_are_possible_together_are_checked_together() -> None:
    """Of two the loss complains about neither by name."""

    @dataclass(frozen=True)
    class Between(CrossEntropy):
        low: float = 0.1
        high: float = 0.2

        def __post_init__(self) -> None:
            if self.low > self.high:
                raise InputError("low and high: expected low <= high")

    both = {"loss.low": Linear(end=0.5), "loss.high": Linear(end=0.6)}
    check_schedules(Between(), {}, both)
    with pytest.raises(
        InputError, match=r"schedule\.loss\.high, schedule\.loss\.low: is impossible at the end"
    ):
        check_schedules(Between(), {}, both | {"loss.low": Linear(end=0.7)})
