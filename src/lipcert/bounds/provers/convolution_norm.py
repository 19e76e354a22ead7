"""Prove the norm of a convolution, by its Gram matrix or its Fourier symbol, chosen by effort and size."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from lipcert.bounds.contract import Proof
from lipcert.bounds.provers.factorisation import scale_to_one
from lipcert.bounds.provers.fourier import circular_norm_upper, dilated, embedded_norm_upper, polyphase
from lipcert.bounds.provers.geometry import Geometry
from lipcert.bounds.provers.gram import EXACT_SIDE, Operator, operator_norm_upper
from lipcert.bounds.provers.proof_cache import remembered
from lipcert.bounds.provers.rounding import U, ldexp_up, mul_up, sqrt_up
from lipcert.bounds.provers.strips import Strip, strip_norm_upper

# Sides of the Gram matrix up to which the exact prover runs by default: always with effort "auto", and when
# a kernel that is large beside the image makes the other provers loose.
_AUTO_SIDE = 2048
_LARGE, _LARGE_SIDE = 0.02, 4096
_VERY_LARGE = 0.1

# The largest cost of the strips of a large kernel, in multiplications, and the same for effort "fast".
_STRIP_COST = 4 * EXACT_SIDE**3
_FAST_STRIP_COST = EXACT_SIDE**3 // 4

# A proof of a small group costs as much as one of this side.
_LEAST_SIDE = 512


def convolution_upper(weight: Tensor, geometry: Geometry, effort: str) -> Proof:
    """Prove the norm of a convolution; weight (c_out, c_in/groups, k₁, k₂)."""
    return remembered(weight, (geometry, effort), lambda: _prove(weight, geometry, effort))


def _prove(weight: Tensor, geometry: Geometry, effort: str) -> Proof:
    scaled, exponent = scale_to_one(weight.detach().to("cpu", torch.float64))
    if scaled is None:
        return Proof(0.0, "known")
    groups = [_operator(part, replace(geometry, groups=1)) for part in scaled.chunk(geometry.groups)]
    if _affordable(len(groups), groups[0].side, _exact_side(geometry, effort)):
        value, prover = max(operator_norm_upper(group) for group in groups), "gram"
    else:
        value, prover = fourier_upper(scaled, geometry, _strip_cost(geometry, effort))
    return Proof(ldexp_up(value, exponent), prover)


def _affordable(groups: int, side: int, limit: int) -> bool:
    """Return whether Gram matrices of this side, one per group, cost no more than one of side `limit`."""
    return groups * side <= limit or groups * max(side, _LEAST_SIDE) ** 3 <= limit**3


def _exact_side(geometry: Geometry, effort: str) -> int:
    """Return the side of the Gram matrix up to which the exact prover is used."""
    if effort == "exact" or geometry.kernel_share > _VERY_LARGE:
        return EXACT_SIDE
    if geometry.kernel_share > _LARGE:
        return _LARGE_SIDE
    return _AUTO_SIDE if effort == "auto" else 0


def _strip_cost(geometry: Geometry, effort: str) -> int:
    """Return the largest cost of strips; 0 where the Fourier bound is good enough."""
    if geometry.kernel_share <= _LARGE:
        return 0
    return _FAST_STRIP_COST if effort == "fast" else _STRIP_COST


def _operator(weight: Tensor, g: Geometry) -> Operator:
    outputs, inputs, *kernel = weight.shape
    absolute = weight.abs()
    # With one pixel in several places, its coefficient and the adjoint's sum have as many terms.
    terms = max(inputs, outputs) * math.prod(kernel) * g.copies + 2 * g.copies
    return Operator(
        input_shape=(inputs, *g.size),
        output_shape=(outputs, *g.output),
        apply=lambda x: g.convolve(x, weight),
        adjoint=lambda y: g.transpose(y, weight),
        absolute_apply=lambda x: g.convolve(x, absolute),
        absolute_adjoint=lambda y: g.transpose(y, absolute),
        terms=terms,
    )


def fourier_upper(weight: Tensor, g: Geometry, strip_cost: int) -> tuple[float, str]:
    """Bound the largest group's norm, times that of padding that repeats pixels; also return the prover."""
    whole = dilated(weight, g.dilation)
    if g.mode == "circular" and _wraps_once(g):
        # On the image's own grid; a stride that does not divide it is dropped, which only adds outputs.
        divides = all(n % s == 0 for n, s in zip(g.size, g.stride, strict=True))
        stride = g.stride if divides else (1, 1)
        cells = (g.size[0] // stride[0], g.size[1] // stride[1])
        parts = polyphase(whole, stride).chunk(g.groups)
        return max(circular_norm_upper(part, cells) for part in parts), "fourier"
    parts = polyphase(whole, g.stride).chunk(g.groups)
    strip = Strip.of(g)
    if len(parts) * strip.cost(parts[0]) <= strip_cost:
        norm, prover = max(strip_norm_upper(part, strip) for part in parts), "strips"
    else:
        norm, prover = max(embedded_norm_upper(part, g.cells) for part in parts), "fourier"
    return (mul_up(norm, sqrt_up(float(g.copies))) if g.copies > 1 else norm), prover


def any_size_upper(weight: Tensor) -> float:
    """Bound the norm of a stride-1 convolution on images of every size, with zero or circular padding.

    The norm is at most the largest norm of the symbol at any frequency. ‖symbol·v‖² is a trigonometric
    polynomial of degree k − 1 in either variable, and a polynomial of degree d is nowhere larger than
    1/cos(πd/N) times its largest value at N > 2d equally spaced points (Ehlich and Zeller, 1964).
    """
    scaled, exponent = scale_to_one(weight.detach().to("cpu", torch.float64))
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


def _wraps_once(g: Geometry) -> bool:
    """Return whether no output of a circular convolution occurs twice."""
    return all(
        (n - r) // s + 1 <= -(-m // s) for n, r, s, m in zip(g.padded, g.reach, g.stride, g.size, strict=True)
    )
