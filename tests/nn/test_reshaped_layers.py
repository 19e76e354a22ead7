"""Björck, RKO, BCOP, AOC and Frobenius layers: which are orthogonal, what they compute and refuse."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert import InputError
from lipcert.bounds import upper
from lipcert.bounds.contract import rule_of
from lipcert.nn import (
    AOCConv2d,
    AOCConvTranspose2d,
    BCOPConv2d,
    BjorckConv2d,
    BjorckLinear,
    FrobeniusConv2d,
    FrobeniusLinear,
    RKOConv2d,
)
from lipcert.nn.bases.polar import _scale, _step, polar, squared_norm_above
from lipcert.nn.bases.reshaped import most_patches
from tests.nn.test_orthogonal_layers import singular_values

CIRCLE = {"padding": 1, "padding_mode": "circular"}

Case = tuple[Callable[[], nn.Module], tuple[int, ...]]

ORTHOGONAL: dict[str, Case] = {
    "bcop": (lambda: BCOPConv2d(4, 4, 3, **CIRCLE), (4, 5, 6)),
    "bcop, more outputs": (lambda: BCOPConv2d(2, 6, 3, **CIRCLE), (2, 5, 4)),
    "bcop, fewer outputs": (lambda: BCOPConv2d(6, 2, 3, **CIRCLE), (6, 5, 4)),
    "bcop, stride": (lambda: BCOPConv2d(6, 4, 3, stride=2, **CIRCLE), (6, 6, 4)),
    "aoc, rows": (lambda: AOCConv2d(3, 6, 3, stride=2, **CIRCLE), (3, 6, 6)),
    "aoc, square": (lambda: AOCConv2d(2, 8, 4, stride=2, **CIRCLE), (2, 6, 4)),
    "aoc, columns": (lambda: AOCConv2d(2, 12, 3, stride=2, **CIRCLE), (2, 6, 4)),
    "aoc, groups": (lambda: AOCConv2d(4, 8, (3, 4), stride=(1, 2), groups=2, **CIRCLE), (4, 5, 6)),
    "aoc, dilation": (
        lambda: AOCConv2d(4, 4, 3, dilation=2, padding=2, padding_mode="circular"),
        (4, 6, 5),
    ),
    "aoc, stride and dilation": (
        lambda: AOCConv2d(2, 8, 2, stride=2, dilation=3, **CIRCLE),
        (2, 8, 8),
    ),
    "aoc transposed": (lambda: AOCConvTranspose2d(8, 2, 3, stride=2), (8, 3, 2)),
    "aoc transposed, stride 1": (lambda: AOCConvTranspose2d(4, 6, 3, groups=2), (4, 4, 3)),
    "rko, patches": (lambda: RKOConv2d(2, 8, 2, stride=2), (2, 6, 4)),
    "rko, fewer outputs": (lambda: RKOConv2d(2, 3, 3, stride=3), (2, 6, 3)),
    "björck, dense": (lambda: BjorckLinear(9, 4), (9,)),
}


@pytest.mark.parametrize("name", list(ORTHOGONAL))
def test_lengths_are_kept(name: str) -> None:
    torch.manual_seed(0)
    make, shape = ORTHOGONAL[name]
    layer = make().double().eval()
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(0.1 * torch.randn_like(p))
    values = singular_values(layer, *shape)
    values = values[: min(len(values), layer(torch.zeros(1, *shape).double()).numel())]
    torch.testing.assert_close(values, torch.ones_like(values), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", [BCOPConv2d, AOCConv2d, RKOConv2d, BjorckConv2d, FrobeniusConv2d])
@pytest.mark.parametrize("padding", [0, 1, 3])
def test_zeros_around_make_nothing_longer(kind: type[nn.Module], padding: int) -> None:
    torch.manual_seed(0)
    layer = kind(2, 6, 4, stride=2, padding=padding).double().eval()
    assert float(singular_values(layer, 2, 5, 6).max()) <= 1 + 1e-12


def test_a_transposed_convolution_is_the_adjoint() -> None:
    there = AOCConv2d(2, 8, 4, stride=2, padding=1, bias=False).double().eval()
    back = AOCConvTranspose2d(8, 2, 4, stride=2, padding=1, bias=False).double().eval()
    back.load_state_dict(there.state_dict())
    x, y = torch.randn(1, 2, 6, 8).double(), torch.randn(1, 8, 3, 4).double()
    torch.testing.assert_close((there(x) * y).sum(), (x * back(y)).sum())


def test_groups_do_not_mix() -> None:
    for kind in (AOCConv2d, RKOConv2d, FrobeniusConv2d):
        layer = kind(4, 6, 3, padding=1, groups=2).eval()
        x = torch.randn(1, 4, 5, 5)
        changed = x.clone()
        changed[:, 2:] += 1
        torch.testing.assert_close(layer(changed)[:, :3], layer(x)[:, :3])


def test_a_convolution_multiplies_patches() -> None:
    layer = RKOConv2d(2, 5, 3, padding=1).eval()
    x = torch.randn(2, 2, 6, 6)
    matrix = polar(layer.raw.detach().flatten(1)) / 3
    expected = matrix @ F.unfold(x, 3, padding=1) + layer.bias.detach()[:, None]
    torch.testing.assert_close(layer(x).flatten(2), expected)


def test_the_count_of_patches_is_reached() -> None:
    for kernel in range(1, 6):
        for stride in range(1, 5):
            for dilation in range(1, 5):
                places = [s * stride + a * dilation for s in range(40) for a in range(kernel)]
                most = max(places.count(p) for p in set(places))
                assert most == most_patches((kernel,), (stride,), (dilation,))


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (8, 2), (2, 3, 9)])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_the_iteration_finds_the_polar_factor(shape: tuple[int, ...], order: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=torch.float64)
    u, _, v = torch.linalg.svd(x, full_matrices=False)
    torch.testing.assert_close(polar(x, order, steps=40), u @ v, rtol=0, atol=1e-9)


@pytest.mark.parametrize("steps", range(1, 6))
@pytest.mark.parametrize("order", [1, 3])
def test_every_step_is_a_contraction(order: int, steps: int) -> None:
    torch.manual_seed(0)
    for shape in ((6, 6), (3, 12)):
        x = torch.randn(20, *shape).double() * torch.logspace(-6, 0, shape[1]).double()
        values = torch.linalg.svdvals(polar(x, order, steps))
        assert float(values.max()) <= 1 + 1e-12
        assert float(values.min()) >= 0


def test_gradients_are_those_of_the_polar_factor() -> None:
    """Few steps are made of a matrix that is nearly orthogonal: their gradient is that of many."""
    torch.manual_seed(0)
    start = nn.init.orthogonal_(torch.empty(4, 6)).double() + 1e-3 * torch.randn(4, 6).double()
    towards = torch.randn(4, 6).double()

    def gradient(factor: Callable[[Tensor], Tensor]) -> Tensor:
        x = start.clone().requires_grad_()
        return torch.autograd.grad((factor(x) * towards).sum(), x)[0]

    def exact(x: Tensor) -> Tensor:
        u, _, v = torch.linalg.svd(x, full_matrices=False)
        return u @ v

    torch.testing.assert_close(gradient(polar), gradient(exact), rtol=1e-5, atol=1e-6)


def test_norms_are_bounded_from_above() -> None:
    torch.manual_seed(0)
    for rows in (1, 3, 40):
        x = torch.randn(5, rows, 50).double()
        gram = x @ x.mT
        bound = squared_norm_above(gram).flatten()
        truth = torch.linalg.matrix_norm(gram, 2)
        assert (bound >= truth).all()
        assert (bound <= 1.6 * truth).all()


def test_constants_follow_what_runs() -> None:
    """A Björck convolution says its norm, below 1; RKO says 1 in training."""
    torch.manual_seed(0)
    layer, other = BjorckConv2d(3, 4, 3, padding=1).double().eval(), RKOConv2d(3, 4, 3).double()
    proved = upper(layer, (3, 6, 6)).value
    assert proved < 0.99
    assert proved == pytest.approx(float(singular_values(layer, 3, 6, 6)[0]), rel=1e-9)
    assert float(rule_of(other).estimate(other, None)) == 1


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: BjorckLinear(3, 3, order=0), "order"),
        (lambda: BjorckConv2d(3, 3, 3, steps=0), "steps"),
        (lambda: BCOPConv2d(2, 2, 3, groups=2), "at least 2 per group"),
        (lambda: AOCConv2d(2, 2, 2, stride=3), "kernel of at least the stride"),
        (lambda: AOCConv2d(2, 2, 3, stride=2, dilation=2), "common divisor"),
        (lambda: AOCConvTranspose2d(2, 2, 3, stride=2, dilation=2), "common divisor"),
        (lambda: RKOConv2d(4, 3, 3, groups=2), "groups"),
        (lambda: RKOConv2d(2, 4, 3, stride=2, **CIRCLE)(torch.zeros(1, 2, 5, 6)), "divisible"),
        (lambda: AOCConv2d(2, 4, 3, stride=2, **CIRCLE)(torch.zeros(1, 2, 6, 5)), "divisible"),
    ],
)
def test_what_it_cannot_do_is_named(make: Callable[[], object], named: str) -> None:
    with pytest.raises(InputError, match=named):
        make()


def test_one_output_needs_no_iteration() -> None:
    layer = FrobeniusLinear(5, 1).double().eval()
    assert float(torch.linalg.vector_norm(layer.weight)) == pytest.approx(1)
    assert math.isclose(upper(layer, (5,)).value, 1, rel_tol=1e-9)


def _one_step(x: Tensor) -> Tensor:
    return _step(x, (x @ x.mT).detach(), 1)


def test_the_short_way_back_is_the_gradient() -> None:
    torch.manual_seed(0)
    for shape in ((3, 4), (4, 4), (2, 5, 2), (2, 7)):
        x = torch.randn(shape, dtype=torch.float64)
        x = (x / torch.linalg.matrix_norm(x, 2)[..., None, None]).requires_grad_()
        assert torch.autograd.gradcheck(lambda y: _one_step(y), x)
        assert torch.autograd.gradgradcheck(lambda y: _one_step(y), x)
        slow = torch.func.vjp(polar, x.detach())[1](torch.ones_like(x))[0]
        (short,) = torch.autograd.grad(polar(x).sum(), x)
        torch.testing.assert_close(short, slow, rtol=1e-6, atol=1e-6)


def test_no_matrix_is_scaled_to_more_than_twice_its_norm() -> None:
    """Also those on which power iteration starts badly: a step of order 1 allows a factor of 2."""
    torch.manual_seed(0)
    hidden = torch.eye(6).double()
    hidden[0, :2] = torch.tensor([3.0, -3.0])
    for x in (*torch.randn(50, 6, 6).double(), hidden, torch.diag(torch.logspace(-3, 0, 6).double())):
        squared = _scale(x @ x.mT, 1)
        assert float(torch.linalg.matrix_norm(x, 2) / squared.sqrt()) <= 2
        assert float(torch.linalg.matrix_norm(polar(x, steps=1), 2)) <= 1 + 1e-12
