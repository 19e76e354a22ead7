"""The provers of convolutions against the dense matrix, for any geometry."""

from __future__ import annotations

import math

import flint
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from lipcert.bounds import upper
from lipcert.bounds.provers.convolutions import by_gram
from lipcert.bounds.provers.fourier import _table
from tests.bounds.provers.arb import arb_norm
from tests.bounds.provers.choice import PROVERS, force

axis = st.tuples(
    st.integers(1, 9),  # size
    st.integers(1, 5),  # kernel
    st.integers(1, 3),  # stride
    st.integers(0, 4),  # padding
    st.integers(1, 3),  # dilation
)


def dense(module: nn.Module, shape: tuple[int, ...]) -> Tensor:
    """The layer's matrix, from its values on unit vectors (it has no bias)."""
    n = math.prod(shape)
    with torch.no_grad():
        return module(torch.eye(n, dtype=torch.float64).view(n, *shape)).flatten(1).T


def inexact(module: nn.Module, shape: tuple[int, ...]) -> list[float]:
    """The bounds of all provers but the exact one, which "fast" takes for some sizes."""
    bounds = []
    for prover in ("fourier", "gram-iteration", "strips"):
        with pytest.MonkeyPatch.context() as patch:
            force(patch, prover)
            bounds.append(upper(module, shape, effort="fast").value)
    return bounds


@settings(max_examples=300)
@given(
    down=axis,
    right=axis,
    channels=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    groups=st.integers(1, 2),
    mode=st.sampled_from(["zeros", "zeros", "circular", "reflect", "replicate"]),
    kind=st.sampled_from(["gaussian", "box", "sparse"]),
    scale=st.sampled_from([1.0, 1e-150, 1e150, 1e-3]),
    seed=st.integers(0, 1000),
)
def test_any_convolution(down, right, channels, groups, mode, kind, scale, seed) -> None:
    size, kernel, stride, padding, dilation = zip(down, right, strict=True)
    for n, k, _, p, d in (down, right):
        assume(d * (k - 1) + 1 <= n + 2 * p)
        assume(mode != "reflect" or p < n)
        assume(mode != "circular" or p <= n)
    torch.manual_seed(seed)
    conv = nn.Conv2d(
        groups * channels[0],
        groups * channels[1],
        kernel,
        stride,
        padding,
        dilation,
        groups,
        bias=False,
        padding_mode=mode,
    ).double()
    with torch.no_grad():
        weight = {
            "gaussian": torch.randn_like,
            "box": torch.ones_like,
            "sparse": lambda w: torch.randn_like(w).relu(),
        }
        conv.weight.copy_(weight[kind](conv.weight) * scale)
    shape = (groups * channels[0], *size)
    truth = float(torch.linalg.matrix_norm(dense(conv, shape), 2))
    exact = upper(conv, shape, effort="exact").value
    assert truth * (1 - 1e-12) <= exact <= truth * (1 + 1e-9) + 1e-140 * scale
    assert min(inexact(conv, shape)) >= truth * (1 - 1e-12)


@settings(max_examples=100)
@given(
    down=axis,
    right=axis,
    channels=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    groups=st.integers(1, 2),
    extra=st.tuples(st.integers(0, 2), st.integers(0, 2)),
)
def test_any_transposed_convolution(down, right, channels, groups, extra) -> None:
    size, kernel, stride, padding, dilation = zip(down, right, strict=True)
    for (n, k, s, p, d), o in zip((down, right), extra, strict=True):
        assume(o < max(s, d))
        assume((n - 1) * s - 2 * p + d * (k - 1) + o + 1 >= 1)
    conv = nn.ConvTranspose2d(
        groups * channels[0],
        groups * channels[1],
        kernel,
        stride,
        padding,
        extra,
        groups,
        bias=False,
        dilation=dilation,
    ).double()
    shape = (groups * channels[0], *size)
    truth = float(torch.linalg.matrix_norm(dense(conv, shape), 2))
    exact = upper(conv, shape, effort="exact").value
    assert truth * (1 - 1e-12) <= exact
    assert min(inexact(conv, shape)) >= truth * (1 - 1e-12)
    if all(o < s for o, s in zip(extra, stride, strict=True)):
        assert exact <= truth * (1 + 1e-9) + 1e-140


@pytest.mark.parametrize(
    ("conv", "shape"),
    [
        (nn.Conv2d(2, 3, 3, padding=1, bias=False), (2, 4, 5)),
        (nn.Conv2d(2, 2, 4, stride=2, padding=1, bias=False), (2, 6, 6)),
        (nn.Conv2d(1, 4, 3, stride=2, padding=1, bias=False), (1, 8, 8)),
        (nn.Conv2d(2, 4, 3, padding=1, padding_mode="reflect", bias=False), (2, 4, 4)),
    ],
)
def test_never_below_ball_arithmetic(conv: nn.Conv2d, shape: tuple[int, ...]) -> None:
    conv = conv.double()
    truth = arb_norm(dense(conv, shape))
    for bound in (upper(conv, shape, effort="exact").value, *inexact(conv, shape)):
        assert flint.arb(bound) >= truth.lower()


@pytest.mark.parametrize("period", [1, 2, 3, 7, 8, 36, 289, 1156])
def test_the_table_of_cosines_is_within_4u(period: int) -> None:
    flint.ctx.prec = 200
    cos, sin = _table(period)
    for j in range(period):
        angle = 2 * flint.arb.pi() * j / period
        assert abs(flint.arb(float(cos[j])) - angle.cos()) < 4 * flint.arb(2) ** -53
        assert abs(flint.arb(float(sin[j])) - angle.sin()) < 4 * flint.arb(2) ** -53


@pytest.mark.parametrize(
    ("size", "kind", "excess"),
    [(14, "gaussian", 0.02), (14, "box", 0.01), (32, "gaussian", 0.01), (32, "box", 0.01)],
)
def test_the_fast_bound_is_tight(size: int, kind: str, excess: float) -> None:
    for channels, kernel, stride, padding in [(4, 3, 1, 1), (8, 4, 2, 1)]:
        if size == 32:
            channels = 2
        conv = nn.Conv2d(channels, channels, kernel, stride, padding, bias=False).double()
        if kind == "box":
            nn.init.ones_(conv.weight)
        else:
            nn.init.normal_(conv.weight)
        shape = (channels, size, size)
        exact = upper(conv, shape, effort="exact").value
        assert upper(conv, shape, effort="fast").value <= exact * (1 + excess), (kernel, stride)


def test_a_depthwise_convolution_is_proved_group_by_group() -> None:
    conv = nn.Conv2d(64, 64, 7, padding=3, groups=64, bias=False).double()
    proof = upper(conv, (64, 14, 14), effort="fast").layers[0]
    truth = max(
        float(torch.linalg.matrix_norm(dense(part, (1, 14, 14)), 2))
        for part in (single(w) for w in conv.weight)
    )
    assert proof.prover == "gram"
    assert truth * (1 - 1e-12) <= proof.upper <= truth * (1 + 1e-6)


@pytest.mark.parametrize(
    ("groups", "side", "limit", "exact"),
    [
        (1, 8192, 8192, True),
        (1, 8193, 8192, False),
        (8192, 1, 8192, True),  # as many rows in all as one group may have
        (256, 196, 4096, True),
        (1024, 196, 4096, False),  # small proofs are not free
        (1, 1, 0, False),
    ],
)
def test_what_the_exact_prover_may_cost(groups: int, side: int, limit: int, exact: bool) -> None:
    assert by_gram._affordable(groups, side, limit) == exact


def single(kernel: Tensor) -> nn.Conv2d:
    """One group of a depthwise convolution."""
    conv = nn.Conv2d(1, 1, 7, padding=3, bias=False).double()
    conv.weight.data = kernel[None]
    return conv


def test_strips_lie_between_the_other_two() -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(8, 8, 7, padding=3, bias=False).double()
    nn.init.normal_(conv.weight)
    bounds = {}
    for prover in PROVERS:
        with pytest.MonkeyPatch.context() as patch:
            force(patch, prover)
            proof = upper(conv, (8, 14, 14)).layers[0]
            bounds[proof.prover] = proof.upper
    assert bounds["gram"] < bounds["strips"] < min(bounds["fourier"], 1.03 * bounds["gram"])
