"""The largest growth of a linear function on ball and box: above every point, and close to the best."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lipcert.certificates.ball_and_box import largest_growth
from lipcert.certificates.box import Box


def random_boxes(pairs: int, size: int) -> Box:
    torch.manual_seed(size)
    return Box(-(torch.rand(pairs, size).double() ** 3), torch.rand(pairs, size).double() ** 3)


def best_point(g: Tensor, box: Box, ball: Tensor) -> Tensor:
    """Return a point of both with a large g·δ: clamp(sg) with the largest scale s that stays in the ball."""
    low, high = torch.zeros(len(g)).double(), torch.full((len(g),), 1e6).double()
    for _ in range(200):
        scale = (low + high) / 2
        inside = (scale[:, None] * g).clamp(box.low, box.high).norm(dim=1) <= ball
        low, high = torch.where(inside, scale, low), torch.where(inside, high, scale)
    return (low[:, None] * g).clamp(box.low, box.high)


@pytest.mark.parametrize("size", [1, 2, 7, 50])
@pytest.mark.parametrize("radius", [1e-3, 0.1, 1.0, 100.0])
def test_it_is_the_best_point_to_six_digits(size: int, radius: float) -> None:
    box = random_boxes(40, size)
    g = torch.randn(40, size).double()
    ball = torch.full((40,), radius).double()
    found = largest_growth(g, box, ball)
    reached = (g * best_point(g, box, ball)).sum(1)
    assert (found >= reached).all()
    torch.testing.assert_close(found, reached, rtol=1e-3, atol=1e-12)


def test_it_is_never_above_ball_or_box_alone() -> None:
    box, g = random_boxes(60, 20), torch.randn(60, 20).double()
    for radius in (0.01, 0.3, 3.0):
        ball = torch.full((60,), radius).double()
        found = largest_growth(g, box, ball)
        assert (found <= radius * g.norm(dim=1) * (1 + 1e-4)).all()
        assert (found <= torch.maximum(g * box.high, g * box.low).sum(1) * (1 + 1e-4)).all()


@pytest.mark.parametrize("entry", [0.0, 1e-300, 1e300])
def test_hard_numbers_stay_above(entry: float) -> None:
    g = torch.tensor([[entry, entry, 0.0]]).double()
    box = Box(torch.tensor([[-1.0, -0.5, -2.0]]).double(), torch.tensor([[1.0, 0.5, 2.0]]).double())
    found = float(largest_growth(g, box, torch.tensor([1.0]).double()))
    assert found >= entry * 0.5 + entry * 0.75**0.5


def test_a_box_without_ends_leaves_the_ball_or_nothing() -> None:
    g = torch.tensor([[1.0, 0.0]]).double()
    far = torch.full((1, 2), torch.inf).double()
    found = float(largest_growth(g, Box(-far, far), torch.tensor([2.0]).double()))
    assert not found < 2.0  # NaN certifies nothing, as it is above no margin and below none
