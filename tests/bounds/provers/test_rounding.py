"""Every rounding term of theorem 1 is in the bound: compared with the formula in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from torch import Tensor

from lipcert.bounds.provers import factorisation as cholesky
from lipcert.bounds.provers.factorisation import gram_upper, nu

U = Fraction(1, 2**53)
CASES = {
    "random": torch.randn(4, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) / 4,
    "wide": torch.randn(2, 3000, dtype=torch.float64, generator=torch.Generator().manual_seed(2)) / 5,
    "one": torch.tensor([[0.7]], dtype=torch.float64),
    "rank one": torch.full((5, 7), 0.3, dtype=torch.float64),
    "nothing": torch.zeros(3, 4, dtype=torch.float64),
}


def gamma(k: int) -> Fraction:
    return k * U / (1 - k * U)


def exact_nu(x: Tensor) -> Fraction:
    rows = [[abs(Fraction(float(v))) for v in row] for row in x]
    frobenius = sum((v * v for row in rows for v in row), Fraction(0))
    return min(frobenius, max(map(sum, rows)) * max(map(sum, zip(*rows, strict=True))))


def terms_of(a: Tensor) -> dict[str, Fraction]:
    """The terms of the theorem, from the factor that the prover finds."""
    n, m = a.shape
    gram = a @ a.T
    gram = (gram.tril() + gram.tril(-1).T)[None]
    shift, factor, shifted = cholesky._factorise(gram, floor=0.0)
    error = (shifted - factor @ factor.mT)[0].abs()
    error = torch.maximum(error, error.T)
    return {
        "shift": Fraction(shift),
        "residual": max(sum(Fraction(float(v)) for v in row) for row in error),
        "product": gamma(n + 2) * exact_nu(factor[0]),
        "gram": gamma(m + 2) * exact_nu(a),
        "difference": 4 * U * Fraction(shift),
        "underflow": n * (m + n + 4) * Fraction(1, 2**1000),
    }


@pytest.mark.parametrize("name", CASES)
def test_the_bound_has_every_term(name: str) -> None:
    a = CASES[name]
    bound = Fraction(gram_upper((a @ a.T)[None], terms=a.shape[1], absolute=nu(a)))
    assert bound >= sum(terms_of(a).values())


def test_no_term_could_be_left_out_unnoticed() -> None:
    """For each term there is a case in which the slack of the bound is smaller than the term."""
    slack = {}
    for name, a in CASES.items():
        bound = Fraction(gram_upper((a @ a.T)[None], terms=a.shape[1], absolute=nu(a)))
        slack[name] = bound - sum(terms_of(a).values())
    for term in ("shift", "product", "gram", "difference", "underflow"):
        assert any(terms_of(a)[term] > slack[name] for name, a in CASES.items()), term


def test_any_factor_and_any_shift_give_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The theorem asks nothing of the factor: a bad one costs tightness, never truth."""
    a = CASES["random"]
    truth = float(torch.linalg.eigvalsh(a @ a.T)[-1])
    gram = (a @ a.T)[None]
    for shift in (1e-3, 0.5 * truth, truth * (1 - 1e-12), truth, 2 * truth):
        for factor in (torch.zeros_like(gram), torch.randn_like(gram).tril(), torch.eye(4).double()[None]):
            shifted = shift * torch.eye(4, dtype=torch.float64)[None] - gram
            found = (shift, factor, shifted)
            monkeypatch.setattr(cholesky, "_factorise", lambda g, f, found=found: found)
            assert gram_upper(gram, terms=9, absolute=nu(a)) >= truth * (1 - 1e-13)
