"""The one radius formula, bit by bit against plain Python on random and on nasty numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from torch import Tensor

from lipcert.certificates.radius import nearest_quickly, nearest_rival, next_below, rival_radii, unrounded
from lipcert.export.certified_graph import rounded_down

TINY, HUGE = 5e-324, 1.7976931348623157e308
NASTY = [0.0, -0.0, 1.0, -1.0, 0.1, TINY, -TINY, 2.3e-308, HUGE, -HUGE, math.inf, -math.inf, math.nan]
CONSTANTS = [0.0, 1.0, 0.1, 3.0, TINY, 2.3e-308, HUGE, math.inf, math.nan]


def quotient(margin: float, constant: float) -> float:
    """As IEEE 754 has it."""
    if constant == 0:
        return math.nan if margin == 0 or math.isnan(margin) else math.copysign(math.inf, margin)
    return margin / constant


def below(value: float) -> float:
    return math.nextafter(value, -math.inf)


def radius_of(margin: float, constant: float, rounded: Callable[[float], float]) -> float:
    if constant == 0:
        return math.inf if margin > 0 else 0.0
    found = rounded(quotient(margin, constant))
    return 0.0 if math.isnan(found) else found


def nasty_pairs() -> tuple[Tensor, Tensor]:
    """Every margin with every constant, against a second rival that is far away: both (B, 3)."""
    pairs = torch.tensor(list(itertools.product(NASTY, CONSTANTS)), dtype=torch.float64)
    margin = torch.stack([torch.zeros(len(pairs)), pairs[:, 0], torch.full((len(pairs),), 1e9)], dim=1)
    return margin, torch.stack([torch.zeros(len(pairs)), pairs[:, 1], torch.ones(len(pairs))], dim=1)


def random_pairs() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    margin, constants, size = torch.randn(3, 2000, 5, generator=generator, dtype=torch.float64)
    return margin * 10 ** (40 * size), constants.abs(), torch.randint(5, (2000,), generator=generator)


@pytest.mark.parametrize(
    ("rounded", "reference"),
    [
        (next_below, below),
        (unrounded, lambda ratio: ratio),
        (rounded_down, lambda ratio: min((1 - 8 * 2.0**-52) * ratio, HUGE)),
    ],
)
def test_every_rival_has_the_radius_of_plain_python(
    rounded: Callable[[Tensor], Tensor], reference: Callable[[float], float]
) -> None:
    nasty, random = nasty_pairs(), random_pairs()
    for margin, constants, top in ((*nasty, torch.zeros(len(nasty[0])).long()), random):
        found = rival_radii(margin, constants, top, rounded)
        pairs = zip(margin.flatten().tolist(), constants.flatten().tolist(), strict=True)
        every = torch.tensor([radius_of(m, k, reference) for m, k in pairs], dtype=torch.float64)
        expected = every.view_as(margin).scatter(1, top[:, None], math.inf)
        assert bool((found == expected).all())  # 0 and -0 are one radius


def test_the_nearest_rival_limits_the_radius_and_nothing_unknown_is_certified() -> None:
    margin, constants = nasty_pairs()
    radius, rival = nearest_rival(margin, constants, torch.zeros(len(margin)).long())
    for (m, k), r, j in zip(
        itertools.product(NASTY, CONSTANTS), radius.tolist(), rival.tolist(), strict=True
    ):
        if not (math.isfinite(m) and math.isfinite(k)):
            assert r == 0
            continue
        expected = radius_of(m, k, below)
        assert r == max(min(expected, below(1e9)), 0.0)
        assert j == (1 if expected < below(1e9) else 2)


def test_a_radius_is_never_above_the_exact_quotient() -> None:
    margin, constants, top = random_pairs()
    radius, rival = nearest_rival(margin, constants, top)
    assert 100 < int((radius > 0).sum()) < len(radius)
    for row, (r, j) in enumerate(zip(radius.tolist(), rival.tolist(), strict=True)):
        exact = Fraction(float(margin[row, j])) / Fraction(float(constants[row, j]))
        assert r == 0 or Fraction(r) < exact


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_quick_form_is_the_formula_where_constants_are_positive(dtype: torch.dtype) -> None:
    margin, constants, top = random_pairs()
    margin, constants = margin.abs().clamp_max(1e30).to(dtype), constants.to(dtype)
    radius, rival = rival_radii(margin, constants, top, unrounded).min(dim=1)
    found = nearest_quickly(margin.clone(), constants, top)
    assert torch.equal(found[0], radius)
    assert torch.equal(found[1], rival)
