"""The exact prover: the Gram matrix of the convolution on the real image size."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

from torch import Tensor

from lipcert.bounds.provers.convolutions.base import LARGE, PROVERS, Prover
from lipcert.bounds.provers.geometry import Geometry
from lipcert.bounds.provers.gram import EXACT_SIDE, Operator, operator_norm_upper
from lipcert.types import Effort

# Sides of the Gram matrix up to which it is used without being asked for: always when the user leaves the
# choice to us, and when the kernel's share of the image makes the other provers loose.
_AUTO_SIDE = 2048
_LARGE_SIDE = 4096
_VERY_LARGE = 0.1

# A proof of a small group costs as much as one of this side.
_LEAST_SIDE = 512


@PROVERS.register("gram")
class GramProver(Prover):
    """The norm of the Gram matrix is exact; its cost grows with the cube of the image's size."""

    looseness: ClassVar[int] = 0

    def is_affordable(self, weight: Tensor, g: Geometry, effort: Effort) -> bool:
        """Compare with one Gram matrix of the largest side that the effort allows."""
        group = _operator(weight.chunk(g.groups)[0], replace(g, groups=1))
        return _affordable(g.groups, group.side, _exact_side(g, effort))

    def upper(self, weight: Tensor, g: Geometry) -> float:
        """Return the largest norm of a group."""
        one = replace(g, groups=1)
        return max(operator_norm_upper(_operator(part, one)) for part in weight.chunk(g.groups))


def _affordable(groups: int, side: int, limit: int) -> bool:
    """Return whether Gram matrices of this side, one per group, cost no more than one of side `limit`."""
    return groups * side <= limit or groups * max(side, _LEAST_SIDE) ** 3 <= limit**3


def _exact_side(geometry: Geometry, effort: Effort) -> int:
    """Return the side of the Gram matrix up to which the exact prover is used."""
    if effort == "exact" or geometry.kernel_share > _VERY_LARGE:
        return EXACT_SIDE
    if geometry.kernel_share > LARGE:
        return _LARGE_SIDE
    return _AUTO_SIDE if effort == "auto" else 0


def _operator(weight: Tensor, g: Geometry) -> Operator:
    outputs, inputs, *kernel = weight.shape
    absolute = weight.abs()
    # One pixel in several places: its coefficient, and what flows back to it, are sums of as many terms.
    terms = max(inputs, outputs) * math.prod(kernel) * g.copies + 2 * g.copies
    return Operator(
        input_shape=(inputs, *g.size),
        output_shape=(outputs, *g.output),
        apply=lambda x: g.convolve(x, weight),
        adjoint=lambda y: g.transpose(y, weight),
        absolute_apply=lambda x: g.convolve(x, absolute),
        absolute_adjoint=lambda y: g.transpose(y, absolute),
        terms=terms,
        device=weight.device,
    )
