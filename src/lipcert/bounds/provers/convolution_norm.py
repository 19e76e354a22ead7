"""The norm of a convolution, proved: by the tightest registered prover that the effort affords."""

from __future__ import annotations

import math

from torch import Tensor

from lipcert.bounds.contract import Proof
from lipcert.bounds.precision import in_double
from lipcert.bounds.provers.convolutions import PROVERS, Prover
from lipcert.bounds.provers.factorisation import scale_to_one
from lipcert.bounds.provers.fourier import circular_norm_upper
from lipcert.bounds.provers.geometry import Geometry
from lipcert.bounds.provers.proof_cache import remembered
from lipcert.bounds.provers.rounding import U, ldexp_up, mul_up, sqrt_up
from lipcert.types import Effort


def convolution_upper(weight: Tensor, geometry: Geometry, effort: Effort) -> Proof:
    """Prove the norm of a convolution; weight (c_out, c_in/groups, k₁, k₂)."""
    return remembered(weight, (geometry, effort), lambda: _prove(weight, geometry, effort))


def _prove(weight: Tensor, geometry: Geometry, effort: Effort) -> Proof:
    scaled, exponent = scale_to_one(in_double(weight))
    if scaled is None:
        return Proof(0.0, "known")
    name, prover = choose_prover(scaled, geometry, effort)
    return Proof(ldexp_up(prover.upper(scaled, geometry), exponent), name)


def choose_prover(weight: Tensor, geometry: Geometry, effort: Effort) -> tuple[str, Prover]:
    """Return the tightest prover that can prove this bound at this effort, with its name."""
    provers = [(name, PROVERS.create(name)) for name in PROVERS]
    fit = [p for p in provers if p[1].can_prove(geometry) and p[1].is_affordable(weight, geometry, effort)]
    return min(fit, key=lambda named: named[1].looseness)


def any_size_upper(weight: Tensor) -> float:
    """Bound the norm of a stride-1 convolution on images of every size, with zero or circular padding.

    The norm is at most the largest norm of the symbol at any frequency. ‖symbol·v‖² is a trigonometric
    polynomial of degree k − 1 in either variable, and a polynomial of degree d is nowhere larger than
    1/cos(πd/N) times its largest value at N > 2d equally spaced points (Ehlich and Zeller, 1964).
    """
    scaled, exponent = scale_to_one(in_double(weight))
    if scaled is None:
        return 0.0
    degrees = [k - 1 for k in scaled.shape[2:]]
    grid = (_grid(degrees[0]), _grid(degrees[1]))
    between = math.prod(math.cos(math.pi * d / n) for d, n in zip(degrees, grid, strict=True))
    factor = sqrt_up((1 + 16 * U) / between)
    return ldexp_up(mul_up(circular_norm_upper(scaled, grid), factor), exponent)


def _grid(degree: int) -> int:
    """Return the number of points that bound a polynomial of this degree to half a percent."""
    return max(1, 32 * degree)
