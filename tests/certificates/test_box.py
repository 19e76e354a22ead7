"""Boxes of layers: they hold every value of the ball, in exact arithmetic too."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from torch import Tensor, nn

import lipcert
from lipcert.bounds.proof import prove
from lipcert.bounds.tracing.program import trace
from lipcert.certificates import local as by_balls
from lipcert.certificates.box import Box, box_after
from lipcert.certificates.local import local_bound
from lipcert.nn import MinMax

CHAINS = {
    "dense": ([nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 6), MinMax(), nn.Linear(6, 4)], (5,)),
    "no bias": ([nn.Linear(5, 6, bias=False), nn.Hardtanh(), nn.Linear(6, 4, bias=False)], (5,)),
    "strided": ([nn.Conv2d(2, 4, 3, 2, padding=1), MinMax(1), nn.Conv2d(4, 3, 3)], (2, 8, 8)),
    "circular": ([nn.Conv2d(2, 4, 3, padding=1, padding_mode="circular"), nn.ReLU6()], (2, 5, 5)),
    "groups": ([nn.Conv1d(4, 4, 3, groups=2, dilation=2), nn.ReLU(), nn.Flatten()], (4, 9)),
}


def boxes(layers: list[nn.Module], start: Box, shape: tuple[int, ...]) -> list[Box]:
    """Follow a box through the layers, each traced alone."""
    found = [start]
    for layer in layers:
        (step,) = trace(layer.double(), shape).steps
        after = box_after(step, found[-1])
        assert after is not None
        found.append(after)
        shape = after.low.shape[1:]
    return found


@pytest.mark.parametrize("kind", CHAINS)
@torch.no_grad()
def test_values_of_a_box_stay_in_the_boxes_that_follow(kind: str) -> None:
    torch.manual_seed(0)
    layers, shape = CHAINS[kind]
    x = torch.randn(3, *shape, dtype=torch.float64)
    start = Box.around(x, torch.full_like(x, 0.2))
    found = boxes(layers, start, shape)
    corners = torch.rand(500, *x.shape, dtype=torch.float64).round()
    value = (start.low + corners * (start.high - start.low)).flatten(0, 1)
    for layer, box in zip(layers, found[1:], strict=True):
        value = layer(value)
        inside = value.unflatten(0, (500, 3))
        assert (box.low <= inside).all()
        assert (inside <= box.high).all()


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@torch.no_grad()
def test_a_box_is_that_of_exact_arithmetic_rounded_outwards(scale: float) -> None:
    torch.manual_seed(1)
    layer = nn.Linear(7, 5).double()
    layer.weight.mul_(scale)
    layer.bias.mul_(scale)
    x, half = torch.randn(1, 7, dtype=torch.float64), 0.1 * torch.rand(1, 7, dtype=torch.float64)
    start = Box(x - half, x + half)
    found = boxes([layer], start, (7,))[1]
    for unit in range(5):
        row = [Fraction(w) for w in layer.weight[unit].tolist()]
        ends = [
            (Fraction(a), Fraction(b))
            for a, b in zip(start.low[0].tolist(), start.high[0].tolist(), strict=True)
        ]
        bias = Fraction(float(layer.bias[unit]))
        low = sum(min(w * a, w * b) for w, (a, b) in zip(row, ends, strict=True)) + bias
        high = sum(max(w * a, w * b) for w, (a, b) in zip(row, ends, strict=True)) + bias
        assert Fraction(float(found.low[0, unit])) <= low
        assert high <= Fraction(float(found.high[0, unit]))
        lost = Fraction(float(found.high[0, unit])) - high
        assert lost <= Fraction(1, 10**5) * (high - low)  # and hardly wider


@torch.no_grad()
def test_a_box_without_width_is_as_wide_as_roundings() -> None:
    layer = nn.Linear(6, 6).double()
    x = torch.randn(1, 6, dtype=torch.float64)
    found = boxes([layer], Box(x, x), (6,))[1]
    assert (found.low < found.high).all()
    assert float((found.high - found.low).max()) < 1e-12


def test_steps_hold_zero_and_all_values() -> None:
    box = Box(torch.tensor([[1.0, 3.0]]).double(), torch.tensor([[2.0, 4.0]]).double())
    value = torch.tensor(
        [[1.5, 5.0]]
    ).double()  # a value outside its box cannot be: zero is held all the same
    steps = box.shifted(value, torch.zeros(1, 1).double())
    assert (steps.low <= 0).all()
    assert (steps.high >= 0).all()
    assert (steps.low <= box.low - value).all()
    assert (steps.high >= box.high - value).all()


def test_a_layer_that_is_not_known_to_grow_has_no_box() -> None:
    (step,) = trace(nn.Tanh().double(), (3,)).steps
    assert box_after(step, Box(torch.zeros(1, 3), torch.ones(1, 3))) is None


def many_thin(seed: int) -> tuple[nn.Module, Tensor]:
    """Make a network in which the product of norms says little: narrow layers, some with large rows."""
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for width in (8, 8, 8):
        layers += [nn.Linear(8 if layers else 2, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(8, 3)), torch.randn(64, 2)


@pytest.mark.parametrize("seed", range(4))
def test_boxes_certify_more_and_never_less(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = many_thin(seed)
    certifier = lipcert.certifier(model, (2,))
    middle = float(certifier(x).radius.median())
    balls = [1.5 * middle, 4 * middle, 10 * middle]
    boxed = certifier(x, local=balls).radius
    monkeypatch.setattr(by_balls, "box_after", lambda step, before: None)
    by_ball = certifier(x, local=balls).radius
    assert (boxed >= by_ball).all()
    assert (boxed > by_ball).any()


@pytest.mark.parametrize("seed", range(4))
@torch.no_grad()
def test_no_point_of_a_ball_leaves_the_steps_of_its_features(seed: int) -> None:
    model, x = many_thin(seed)
    model, x, radius = model.double(), x.double()[:8], 0.3
    program, _ = trace(model, (2,)).split_head()
    local = local_bound(program, prove(program), x, radius)
    direction = torch.randn(2000, *x.shape, dtype=torch.float64)
    direction = direction / direction.norm(dim=2, keepdim=True) * radius
    features = model[:-1]
    step = features((x + direction).flatten(0, 1)).unflatten(0, (2000, 8)) - features(x)
    assert (step >= local.steps.low).all()
    assert (step <= local.steps.high).all()
    assert (step.norm(dim=2) <= local.distance).all()
