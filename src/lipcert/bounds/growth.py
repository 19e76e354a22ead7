"""Bound the rounding error of a layer by the length of its input, so that no layer is evaluated twice.

A rule's `roundoff` looks at every product: a second pass through the layer, with |W| and |x|. Its Lipschitz
constant bounds it by its value at 0 and the length of x, for the cost of a norm. In float64 the difference
is negligible; where it is not, the second pass is made. See docs/proofs.md, theorem 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.bounds.contract import sample_norm
from lipcert.bounds.proof import Bound
from lipcert.bounds.provers.rounding import SAFETY, TINY_ROOT, U
from lipcert.bounds.tracing.program import Program, Step

# The largest rounding error relative to the input's length, in units of the layer's constant.
_COARSEST = 1e-9

_CPU = torch.device("cpu")

# Larger rounding errors may come from numbers that overflowed on the way.
_LARGEST = 2.0**900


@dataclass(frozen=True)
class Growth:
    """The float64 rounding error of a layer: at most `still` + `slope`·‖x‖."""

    still: float
    slope: float

    def __call__(self, x: Tensor) -> Tensor:
        """Bound the rounding error per sample: (B,)."""
        lost = SAFETY * (self.still + self.slope * sample_norm(x))
        return torch.where(lost <= _LARGEST, lost, torch.inf)


def growths(program: Program, bound: Bound, where: torch.device = _CPU) -> list[Growth | None]:
    """Return the growth of every layer on a device; None where its rule has to look at the input."""
    return [
        _growth(step, layer.upper, where) for step, layer in zip(program.steps, bound.layers, strict=True)
    ]


@torch.no_grad()
def _growth(step: Step, upper: float, where: torch.device) -> Growth | None:
    if len(step.inputs) != 1:  # sums and the like, whose rounding errors cost no more than norms
        return None
    zeros = torch.zeros(2, *step.input_shapes[0], dtype=torch.float64, device=where)
    try:
        still = float(step.rule.roundoff(step.module, [zeros], step.run([zeros])).max())
        slope = U * step.rule.roundoff_gain(step.module)
    except NotImplementedError:  # a rule without bounds of rounding errors or of their growth
        return None
    # Below TINY_ROOT, squares of weights may have underflowed.
    is_known = math.isfinite(still) and TINY_ROOT <= slope <= _COARSEST * upper
    return Growth(still, slope) if is_known else None
