"""The proved spectral norm against ball arithmetic (Arb): never below the truth, and close to it."""

from __future__ import annotations

import math

import flint
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lipcert import InputError
from lipcert.bounds.provers.factorisation import gram_upper, nu, spectral_norm_upper
from tests.bounds.provers.arb import arb_norm


def check_bound(a: Tensor, excess: float = 1e-9) -> None:
    bound, truth = spectral_norm_upper(a), arb_norm(a)
    assert flint.arb(bound) >= truth.lower()
    assert bound <= float(truth.upper()) * (1 + excess) + 1e-320


@settings(max_examples=60)
@given(
    n=st.integers(1, 7),
    m=st.integers(1, 7),
    exponent=st.integers(-150, 150),
    seed=st.integers(0, 10_000),
)
def test_random_matrices_at_any_scale(n: int, m: int, exponent: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    check_bound(torch.randn(n, m, generator=generator, dtype=torch.float64) * 10.0**exponent)


HARD = {
    "duplicate rows": torch.ones(4, 6, dtype=torch.float64) * 0.1,
    "zero rows": torch.diag(torch.tensor([0.0, 3.0, 0.0, 0.7], dtype=torch.float64)),
    "rank one": torch.outer(torch.arange(1.0, 6), torch.arange(2.0, 9)).double() / 3,
    "orthogonal": torch.linalg.qr(
        torch.randn(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    )[0],
    "identity": torch.eye(5, dtype=torch.float64),
    "denormals": torch.tensor([[5e-324, 1e-310], [3e-320, 2e-308]], dtype=torch.float64),
    "huge": torch.tensor([[1e308, 1e307], [0.0, 1e300]], dtype=torch.float64),
    "graded": torch.diag(torch.logspace(-200, 0, 6, dtype=torch.float64)) + 1e-170,
    "close pair": torch.diag(torch.tensor([1.0, 1 - 2**-50, 1 - 2**-52], dtype=torch.float64)),
    "one entry": torch.tensor([[-0.1]], dtype=torch.float64),
    "float32": torch.randn(3, 9, generator=torch.Generator().manual_seed(4)),
    "wide": torch.randn(3, 400, dtype=torch.float64, generator=torch.Generator().manual_seed(5)),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_matrices(name: str) -> None:
    check_bound(HARD[name])


def test_a_larger_matrix_is_above_svd_and_within_1e_9() -> None:
    a = torch.randn(700, 900, dtype=torch.float64)
    truth = float(torch.linalg.matrix_norm(a, 2))
    assert truth * (1 - 1e-13) <= spectral_norm_upper(a) <= truth * (1 + 1e-9)


def test_zero_has_norm_zero() -> None:
    assert spectral_norm_upper(torch.zeros(3, 4)) == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_weights_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(InputError, match="finite"):
        spectral_norm_upper(torch.tensor([[1.0, bad]]))


@pytest.mark.parametrize("batch", [1, 2, 7])
@pytest.mark.parametrize("floor", [1e-3, 0.9, 1.5, 40.0])
def test_a_floor_below_or_above_the_truth(batch: int, floor: float) -> None:
    """Chunks of a long batch start from the largest bound so far; the last chunk may be a single matrix."""
    a = torch.randn(batch, 5, 9, dtype=torch.float64).clamp(-1, 1)
    gram = a @ a.mT
    truth = float(torch.linalg.eigvalsh(gram)[:, -1].max())
    bound = gram_upper(gram, terms=9, absolute=nu(a), floor=floor * truth)
    assert max(truth, floor * truth) <= bound * (1 + 1e-15)
    assert bound <= max(truth, floor * truth) * (1 + 1e-9)
