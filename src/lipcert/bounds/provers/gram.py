"""The exact prover for operators that are never stored: it builds the Gram matrix by applying them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.bounds.provers.factorisation import gram_upper
from lipcert.bounds.provers.rounding import sqrt_up
from lipcert.bounds.provers.summing import summing
from lipcert.types import Shape

# The largest side of a Gram matrix: half a gigabyte.
EXACT_SIDE = 8192

# Numbers computed at once while the Gram matrix is filled.
_CHUNK = 1 << 22


@dataclass(frozen=True)
class Operator:
    """A linear map given by its action, in float64, with coefficients at most 1 in absolute value.

    `apply` and `adjoint` act on batches. An entry of either is a sum of at most `terms` products (of the
    coefficients, which may themselves be sums that `terms` counts). `absolute_*` do the same with |A|.
    """

    input_shape: Shape
    output_shape: Shape
    apply: Callable[[Tensor], Tensor]
    adjoint: Callable[[Tensor], Tensor]
    absolute_apply: Callable[[Tensor], Tensor]
    absolute_adjoint: Callable[[Tensor], Tensor]
    terms: int
    device: torch.device

    @property
    def side(self) -> int:
        """Return the side of the smaller Gram matrix."""
        return min(math.prod(self.input_shape), math.prod(self.output_shape))


def operator_norm_upper(operator: Operator) -> float:
    """Bound ‖A‖₂ from above by AAᵀ or AᵀA, whichever is smaller."""
    rows = torch.ones(1, *operator.input_shape, dtype=torch.float64, device=operator.device)
    columns = torch.ones(1, *operator.output_shape, dtype=torch.float64, device=operator.device)
    with summing(operator.device):
        # ‖A‖_∞‖A‖₁ bounds ‖|A|‖₂².
        largest = (operator.absolute_apply(rows).max(), operator.absolute_adjoint(columns).max())
        gram = _gram(operator)
    return sqrt_up(gram_upper(gram[None], operator.terms, float(largest[0]) * float(largest[1])))


def _gram(operator: Operator) -> Tensor:
    wide = math.prod(operator.output_shape) <= math.prod(operator.input_shape)
    shape = operator.output_shape if wide else operator.input_shape
    first, second = (operator.adjoint, operator.apply) if wide else (operator.apply, operator.adjoint)
    n = math.prod(shape)
    step = max(1, _CHUNK // max(math.prod(operator.input_shape), math.prod(operator.output_shape)))
    gram = torch.empty(n, n, dtype=torch.float64, device=operator.device)
    for start in range(0, n, step):
        stop = min(start + step, n)
        units = gram.new_zeros(stop - start, n)
        units.diagonal(start).fill_(1.0)
        gram[start:stop] = second(first(units.view(-1, *shape))).flatten(1)
    return gram
