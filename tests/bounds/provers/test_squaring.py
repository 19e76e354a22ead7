"""Gram iteration against ball arithmetic (Arb), rational arithmetic and dense matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import flint
import pytest
import torch
from torch import Generator, Tensor

from lipcert.bounds.provers import squaring
from lipcert.bounds.provers.convolution_norm import choose_prover
from lipcert.bounds.provers.convolutions import PROVERS
from lipcert.bounds.provers.factorisation import scale_to_one
from lipcert.bounds.provers.fourier import largest_norm_upper
from lipcert.bounds.provers.geometry import Geometry
from lipcert.bounds.provers.rounding import ldexp_up, sqrt_up
from lipcert.bounds.provers.squaring import Powers, largest_by_squaring, square_upper, whole
from tests.bounds.provers.arb import arb_lower, arb_norm
from tests.bounds.provers.test_arb import KINDS, integer, normal
from tests.bounds.provers.test_factorisation import HARD

CASES = 12  # per kind


@pytest.fixture
def squaring_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Square until one matrix stands out or rounding hides it: theorem 1 gets no matrix it could bound."""
    monkeypatch.setattr(squaring, "_BUDGET", 60)
    monkeypatch.setattr(squaring, "_STALLED", 2.0)
    real = squaring._iterate

    def iterate(powers: Powers, *settings: float) -> tuple[float, Tensor]:
        found, left = real(powers, *settings)
        return (float(powers.uppers().max()), left[:0]) if len(left) else (found, left)

    monkeypatch.setattr(squaring, "_iterate", iterate)


def bound(a: Tensor) -> float:
    """Bound the norm of a stored real matrix, as one symbol."""
    scaled, exponent = scale_to_one(a.double())
    if scaled is None:
        return 0.0
    parts = (scaled[None], torch.zeros_like(scaled)[None])
    return ldexp_up(largest_by_squaring(lambda _: parts, torch.arange(1), *scaled.shape), exponent)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alone", [True, False])
def test_matrices_of_any_kind(kind: str, alone: bool, request: pytest.FixtureRequest) -> None:
    if alone:
        request.getfixturevalue("squaring_alone")
    generator = torch.Generator().manual_seed(7)
    for case in range(CASES):
        n, m = (integer(generator, *((1, 24) if case % 4 else (32, 48))) for _ in range(2))
        a = KINDS[kind](generator, n, m)
        assert flint.arb(bound(a)) >= arb_lower(a), (n, m)


@pytest.mark.parametrize("name", HARD)
def test_hard_matrices(name: str) -> None:
    proved, truth = bound(HARD[name]), arb_norm(HARD[name])
    assert flint.arb(proved) >= truth.lower()
    assert proved <= float(truth.upper()) * (1 + 1e-9) + 1e-320


@pytest.mark.parametrize("name", HARD)
def test_squaring_alone_on_hard_matrices(name: str, squaring_alone: None) -> None:
    assert flint.arb(bound(HARD[name])) >= arb_norm(HARD[name]).lower()


def complex_matrices(g: Generator, count: int, p: int, q: int) -> tuple[Tensor, Tensor]:
    return normal(g, count, p, q), normal(g, count, p, q)


def weighted(parts: tuple[Tensor, Tensor], factors: Tensor) -> tuple[Tensor, Tensor]:
    return parts[0] * factors[:, None, None], parts[1] * factors[:, None, None]


def unitary(g: Generator, count: int, side: int) -> tuple[Tensor, Tensor]:
    found = torch.linalg.qr(torch.complex(*complex_matrices(g, count, side, side)))[0]
    return found.real.contiguous(), found.imag.contiguous()


BATCHES: dict[str, Callable[[Generator], tuple[Tensor, ...]]] = {
    "random": lambda g: complex_matrices(g, 40, 5, 7),
    "one far above": lambda g: weighted(complex_matrices(g, 40, 5, 7), 1.0 + 3 * (torch.arange(40) == 3)),
    "all the same": lambda g: tuple(x.repeat(30, 1, 1) for x in complex_matrices(g, 1, 6, 6)),
    "some zero": lambda g: weighted(complex_matrices(g, 20, 4, 9), 1.0 * (torch.arange(20) % 3 == 0)),
    "unitary": lambda g: unitary(g, 20, 6),
    "rank one": lambda g: tuple(x.expand(10, 6, 6) for x in complex_matrices(g, 10, 6, 1)),
    "one by one": lambda g: complex_matrices(g, 30, 1, 1),
    "nothing": lambda g: (torch.zeros(5, 3, 4).double(), torch.zeros(5, 3, 4).double()),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", BATCHES)
def test_the_largest_of_a_batch(name: str, seed: int) -> None:
    real, imag = BATCHES[name](torch.Generator().manual_seed(seed))
    truth = float(torch.linalg.matrix_norm(torch.complex(real, imag), 2).max())
    found = sqrt_up(square_upper(real, imag))
    assert truth * (1 - 1e-13) <= found <= truth * (1 + 1e-9) + 1e-50
    assert sqrt_up(square_upper(real, imag, floor=4 * truth**2)) >= 2 * truth * (1 - 1e-13)


@pytest.mark.parametrize("rows", [3, 9])
def test_many_chunks_and_both_shapes(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(squaring, "_CHUNK", 4 * rows * 5 * 4)  # four matrices at once
    real, imag = complex_matrices(torch.Generator().manual_seed(0), 50, rows, 5)
    every = torch.arange(50)
    settings = (lambda i: (real[i], imag[i]), every, rows, 5)
    truth = float(torch.linalg.matrix_norm(torch.complex(real, imag), 2).max())
    assert truth * (1 - 1e-13) <= largest_by_squaring(*settings) <= truth * (1 + 1e-12)


@pytest.mark.parametrize("factor", [0.0, 0.5, 1 - 1e-9, 1 + 1e-9, 1.5, 4.0])
def test_any_estimate_from_below_gives_a_bound(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """An estimate may leave out matrices, and even all of them: then it is the bound itself."""
    real_lowers = Powers.lowers
    monkeypatch.setattr(Powers, "lowers", lambda self, before: factor * real_lowers(self, before))
    for name in ("random", "all the same", "unitary", "some zero"):
        real, imag = BATCHES[name](torch.Generator().manual_seed(1))
        truth = float(torch.linalg.matrix_norm(torch.complex(real, imag), 2).max())
        assert sqrt_up(square_upper(real, imag)) >= truth * (1 - 1e-13), name


def exact(matrix: Tensor) -> list[list[Fraction]]:
    return [[Fraction(float(v)) for v in row] for row in matrix]


def times(a: list[list[Fraction]], b: list[list[Fraction]]) -> list[list[Fraction]]:
    columns = list(zip(*b, strict=True))
    return [[sum((x * y for x, y in zip(row, c, strict=True)), Fraction(0)) for c in columns] for row in a]


def distance(powers: Powers, truth: list[list[Fraction]]) -> Fraction:
    """Return the squared distance of a computed matrix from the exact one, in the Frobenius norm."""
    found = exact(powers.halves[0])
    side = len(found[0])
    return sum(((found[i][j] - truth[i][j]) ** 2 for i in range(2 * side) for j in range(side)), Fraction(0))


def worst_share(real: Tensor, imag: Tensor) -> float:
    """Return the largest share of its bound that the error takes over three squarings, 10 at most."""
    wide = torch.cat([real, -imag], dim=2)
    full = torch.cat([wide, torch.cat([imag, real], dim=2)], dim=1)
    energy = float(wide.square().sum())
    errors = squaring.gamma(2 * real.shape[2]) * 2**0.5 * torch.tensor([energy]).double()
    gram = full @ wide.mT
    powers = Powers.of(gram, squaring.frobenius(gram), errors)
    rows = exact(full[0])
    truth = times(rows, [list(row) for row in zip(*rows, strict=True)])
    worst = 0.0
    for _ in range(4):
        scale = Fraction(float(powers.scales[-1]))
        truth = [[v / scale for v in row] for row in truth]
        share = distance(powers, truth) / Fraction(float(powers.errors[0])) ** 2
        worst = max(worst, float(min(share, Fraction(100))) ** 0.5)
        powers, truth = powers.squared(), times(truth, truth)
    return worst


def test_the_error_lies_within_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """In rational arithmetic; without the rounding of the products it would not."""
    cases = [complex_matrices(torch.Generator().manual_seed(seed), 1, 3, 5) for seed in range(10)]
    assert max(worst_share(*case) for case in cases) <= 1
    monkeypatch.setattr(squaring, "gamma", lambda terms: 0.0)
    assert min(worst_share(*case) for case in cases) > 1


def below(seed: int) -> bool:
    """Return whether the bound of a matrix of rank one, of which squaring is exact, lies below the truth."""
    g = torch.Generator().manual_seed(seed)
    a = normal(g, 4, 1) * normal(g, 1, 4000)
    return not flint.arb(bound(a)) >= arb_lower(a)


def test_bounds_without_rounding_terms_are_too_low(
    squaring_alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not any(below(seed) for seed in range(20))
    monkeypatch.setattr(squaring, "gamma", lambda terms: 0.0)
    assert any(below(seed) for seed in range(20))


def test_errors_of_earlier_products_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the errors that squaring carries on, the bound of the error is too small."""
    real_squared = Powers.squared
    forgetful = lambda self: real_squared(replace(self, errors=0 * self.errors))  # noqa: E731
    g = torch.Generator().manual_seed(0)
    cases = [(normal(g, 1, 1, 1000), torch.zeros(1, 1, 1000).double()) for _ in range(10)]
    assert max(worst_share(*case) for case in cases) <= 1
    monkeypatch.setattr(Powers, "squared", forgetful)
    assert max(worst_share(*case) for case in cases) > 1


def test_the_whole_of_a_half() -> None:
    real, imag = complex_matrices(torch.Generator().manual_seed(0), 1, 3, 3)
    matrix = whole(torch.cat([real, imag], dim=1))
    norm = float(torch.linalg.matrix_norm(torch.complex(real, imag), 2))
    assert float(torch.linalg.matrix_norm(matrix, 2)) == pytest.approx(norm)


MODES = {
    "plain": ((5, 5), (1, 1), 1, "zeros"),
    "stride": ((6, 5), (2, 2), 1, "zeros"),
    "groups": ((4, 5), (1, 1), 2, "zeros"),
    "circular": ((5, 4), (1, 1), 1, "circular"),
    "circular, stride": ((6, 4), (2, 2), 1, "circular"),
    "reflect": ((4, 4), (1, 1), 1, "reflect"),
    "replicate": ((4, 4), (1, 1), 1, "replicate"),
}


@pytest.mark.parametrize("where", MODES)
@pytest.mark.parametrize("kind", [torch.randn_like, torch.ones_like])
def test_convolutions_with_many_channels_against_dense_matrices(where: str, kind) -> None:
    size, stride, groups, mode = MODES[where]
    g = Geometry(size, (3, 3), stride, ((1, 1), (1, 1)), (1, 1), groups, mode)
    weight = kind(torch.empty(24 * groups, 24, 3, 3, dtype=torch.float64))
    weight = weight / weight.abs().max()
    units = torch.eye(24 * groups * size[0] * size[1], dtype=torch.float64)
    dense = g.convolve(units.view(-1, 24 * groups, *size), weight).flatten(1)
    found = PROVERS.create("gram-iteration").upper(weight, g)
    assert found >= float(torch.linalg.matrix_norm(dense, 2)) * (1 - 1e-12)
    assert found <= PROVERS.create("fourier").upper(weight, g) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("channels", "name"), [(4, "fourier"), (23, "fourier"), (24, "gram-iteration"), (64, "gram-iteration")]
)
def test_many_channels_are_proved_by_gram_iteration(channels: int, name: str) -> None:
    g = Geometry((40, 40), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1, "zeros")
    weight = torch.ones(channels, channels, 3, 3, dtype=torch.float64)
    assert choose_prover(weight, g, "fast")[0] == name


@pytest.mark.parametrize("kind", ["random", "unitary", "rank one", "one far above"])
def test_it_agrees_with_factorisations(kind: str) -> None:
    real, imag = BATCHES[kind](torch.Generator().manual_seed(3))
    settings = (lambda i: (real[i], imag[i]), torch.arange(len(real)), *real.shape[1:])
    assert largest_by_squaring(*settings) == pytest.approx(largest_norm_upper(*settings), rel=1e-12)
