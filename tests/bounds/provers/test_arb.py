"""Thousands of matrices and convolutions: the proved norm is never below the lower end of ball arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable

import flint
import pytest
import torch
from torch import Generator, Tensor, nn

from lipcert.bounds import upper
from lipcert.bounds.provers.factorisation import spectral_norm_upper
from tests.bounds.provers.arb import arb_lower
from tests.bounds.provers.choice import PROVERS, force
from tests.bounds.provers.test_convolution_norm import dense

CASES = 40  # a kind and batch
BATCHES = 6


def normal(generator: Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def integer(generator: Generator, low: int, high: int) -> int:
    return int(torch.randint(low, high, (), generator=generator))


def orthogonal(g: Generator, n: int, m: int) -> Tensor:
    return torch.linalg.qr(normal(g, max(n, m), min(n, m)))[0]


def sizes(g: Generator, n: int) -> Tensor:
    return 10.0 ** torch.randint(-150, 150, (n, 1), generator=g).double()


KINDS: dict[str, Callable[[Generator, int, int], Tensor]] = {
    "random": normal,
    "tiny": lambda g, n, m: normal(g, n, m) * 1e-150,
    "huge": lambda g, n, m: normal(g, n, m) * 1e150,
    "denormal": lambda g, n, m: normal(g, n, m) * 2.0**-1060,
    "nearly overflowing": lambda g, n, m: normal(g, n, m).clamp(-1, 1) * 1e307,
    "rows of any size": lambda g, n, m: normal(g, n, m) * sizes(g, n),
    "columns of any size": lambda g, n, m: normal(g, n, m) * 10.0 ** (normal(g, 1, m) * 3),
    "duplicate rows": lambda g, n, m: normal(g, 1, m).repeat(n, 1),
    "zero rows": lambda g, n, m: normal(g, n, m) * (normal(g, n, 1) > 0.5),
    "rank one": lambda g, n, m: normal(g, n, 1) * normal(g, 1, m),
    "orthogonal": orthogonal,
    "nearly orthogonal": lambda g, n, m: orthogonal(g, n, m) * (1 + 1e-15 * normal(g, 1, min(n, m))),
    "float32": lambda g, n, m: normal(g, n, m).float(),
    "constant": lambda g, n, m: torch.full((n, m), 0.1, dtype=torch.float64),
    "sparse": lambda g, n, m: normal(g, n, m) * (torch.rand(n, m, generator=g) < 0.05),
}


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("kind", KINDS)
def test_matrices(kind: str, batch: int) -> None:
    generator = torch.Generator().manual_seed(batch)
    for case in range(CASES):
        small = case % 4  # every fourth has a side of 64 at least
        n, m = (integer(generator, 1, 24) if small else integer(generator, 64, 96) for _ in range(2))
        a = KINDS[kind](generator, n, m)
        assert flint.arb(spectral_norm_upper(a)) >= arb_lower(a), (n, m)


LIMITS = {"kernel_size": (1, 6), "stride": (1, 4), "padding": (0, 4), "dilation": (1, 3)}


def random_convolution(g: Generator) -> tuple[nn.Conv2d, tuple[int, ...]]:
    """Of any geometry that fits, on an image that makes an operator of side 64 or more."""
    while True:
        shape = (integer(g, 1, 4), integer(g, 7, 12), integer(g, 7, 12))
        geometry = {key: (integer(g, *limits), integer(g, *limits)) for key, limits in LIMITS.items()}
        conv = nn.Conv2d(shape[0], integer(g, 1, 4), bias=False, dtype=torch.float64, **geometry)
        try:
            outputs = conv(torch.zeros(1, *shape, dtype=torch.float64)).numel()
        except RuntimeError:  # the kernel is larger than the image
            continue
        if min(outputs, math.prod(shape)) >= 64:
            return conv, shape


@pytest.mark.parametrize("batch", range(8))
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150, 2.0**-1050])
def test_convolutions(scale: float, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(batch)
    for case in range(8):
        conv, shape = random_convolution(generator)
        weight = normal(generator, *conv.weight.shape) if case % 4 else torch.ones_like(conv.weight)
        conv.weight.data = weight * scale
        truth = arb_lower(dense(conv, shape))
        for prover in PROVERS:
            force(monkeypatch, prover)
            assert flint.arb(upper(conv, shape).value) >= truth, (conv, shape)
