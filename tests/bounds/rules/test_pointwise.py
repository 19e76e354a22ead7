"""The slopes of activations, proved with ball arithmetic, and what torch does beside the formula."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flint
import pytest
import torch
from torch import Tensor, nn

from lipcert import certifier
from lipcert.bounds import upper
from lipcert.bounds.contract import rule_of
from lipcert.bounds.rules.pointwise import MISH_SLOPE
from lipcert.bounds.tracing.program import trace

PEAK = 1.4905711794854282  # where Mish is steepest


def mish_slope(x: Any) -> Any:
    """The derivative of x·tanh(log(1 + e^x)), of a ball or of a power series."""
    e = x.exp()
    square = e * e + 2 * e + 2  # tanh(log(1 + e)) = 1 − 2/square, written so that balls grow less
    return 1 - 2 / square + x * 4 * e * (1 + e) / (square * square)


def holds(claim: Callable[[Any], bool], left: float, right: float) -> bool:
    """Whether a claim is shown on all of an interval, by halving it."""
    if right - left < 1e-6:
        return False
    middle = (left + right) / 2
    if claim(flint.arb(middle, (right - left) / 2)):
        return True
    return holds(claim, left, middle) and holds(claim, middle, right)


def curvature(x: Any) -> Any:
    return mish_slope(flint.arb_series([x, 1], 3))[2]


def test_the_slope_of_mish_is_proved_and_tight() -> None:
    bound = flint.arb(MISH_SLOPE)
    for left, right in ((-20.0, 1.3), (1.7, 20.0)):
        assert holds(lambda x: abs(mish_slope(x)) < bound, left, right)
    # Near the peak the slope is concave, so it lies below its tangent at any point.
    assert holds(lambda x: curvature(x) < 0, 1.3, 1.7)
    value, tangent, _ = mish_slope(flint.arb_series([flint.arb(PEAK), 1], 3))
    assert value + abs(tangent) * 0.4 < bound
    assert value > bound - 1e-10
    # Beyond ±20 its first part is in (0, 1), its second at most 4|x|e^−|x|, which falls with |x|.
    assert 1 + 4 * 20 * math.exp(-20) < MISH_SLOPE


def test_hardswish_attains_its_constant() -> None:
    x = torch.tensor([[3.0, 3.0 - 1e-6]], dtype=torch.float64)
    y = nn.Hardswish()(x)
    slope = float((y[0, 0] - y[0, 1]) / (x[0, 0] - x[0, 1]))
    assert 1.4999 < slope <= upper(nn.Hardswish(), (1,)).value < 1.5 + 1e-12


@pytest.mark.parametrize(("beta", "threshold"), [(1.0, 20.0), (2.5, 20.0), (0.5, 30.0), (1000.0, 20.0)])
def test_torch_is_off_the_formula_by_no_more_than_the_jump(beta: float, threshold: float) -> None:
    layer = nn.Softplus(beta, threshold)
    jump = rule_of(layer).jump(layer)
    above = torch.tensor([[threshold / beta * (1 + 1e-12)]], dtype=torch.float64)
    exact = (flint.arb(float(above)) * beta).exp().__add__(1).log() / beta
    off = float(exact - flint.arb(float(layer(above))))
    assert 0.98 * jump < off <= jump  # it does jump there, and the bound is tight
    below = threshold / beta * (1 - 1e-12)
    assert float(layer(torch.tensor([below], dtype=torch.float64))) > below + 0.9 * jump


def jumping(gain: float) -> nn.Sequential:
    """One unit at the threshold of Softplus: the second class leads by about `gain`·(x − 20)."""
    first, last = nn.Linear(1, 1), nn.Linear(1, 2)
    model = nn.Sequential(first, nn.Softplus(), last).double()
    with torch.no_grad():
        first.weight.fill_(1.0), first.bias.fill_(0.0)
        last.weight.copy_(torch.tensor([[0.0], [gain]]))
        last.bias.copy_(torch.tensor([20.0 * gain, 0.0]))
    return model.eval()


def test_a_certificate_holds_across_the_jump() -> None:
    """Just below the threshold Softplus is above 20 by the jump, just above by nothing.

    Without the jump in the error, a point below with a margin of the jump has that as its radius, and torch
    itself changes the class where it jumps, nearer than that.
    """
    model = jumping(gain=1.0)
    below = torch.tensor([[20.0 - 1e-12]], dtype=torch.float64)
    beyond = torch.tensor([[20.0 + 1e-15 * 4]], dtype=torch.float64)
    margin = (model(below)[0, 1] - model(below)[0, 0]).detach()
    assert 1e-9 < float(margin) < 1e-8
    assert (model(beyond)[0, 1] - model(beyond)[0, 0]).item() < 1e-13  # gone within 1e-12
    assert float(certifier(model, (1,))(below).radius) == 0.0
    far = torch.tensor([[19.0], [21.0]], dtype=torch.float64)
    radius = certifier(model, (1,))(far).radius
    assert ((radius > 0.9999) & (radius <= 1.0)).all()


def test_softplus_costs_nothing_elsewhere() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 3)).eval()
    x = torch.randn(16, 4)
    radius = {name: certifier(model, (4,))(x, name).radius for name in ("float64", "float32", "ignored")}
    torch.testing.assert_close(radius["float64"], radius["ignored"], rtol=1e-5, atol=1e-6)
    assert (radius["float32"] <= radius["float64"]).all()
    torch.testing.assert_close(radius["float32"], radius["ignored"], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("layer", [nn.Hardtanh(-0.1, 0.7), nn.ConstantPad2d(1, 0.1)], ids=repr)
def test_settings_that_float32_rounds_are_counted(layer: nn.Module) -> None:
    """A float32 module computes with another number than its float64 copy, far from rounding nothing."""
    (step,) = trace(nn.Sequential(layer), (1, 2, 2)).steps
    x = torch.full((1, 1, 2, 2), 3.0)
    error = (layer(x).double() - layer(x.double())).norm()
    assert error > 1e-9
    bound: Tensor = step.rule.roundoff(layer, [x.double()], layer(x.double()))
    assert float(error) <= float(bound) * 2.0**29


def test_settings_that_float32_represents_are_exact() -> None:
    for layer in (nn.ReLU6(), nn.Hardtanh(), nn.ConstantPad2d(1, 2.5)):
        x = torch.randn(2, 1, 2, 2, dtype=torch.float64)
        assert not rule_of(layer).roundoff(layer, [x], layer(x)).any()
