r"""Bounds that hold on a ball around each sample: units that are constant there drop out.

Huang, Zhang, Shi, Kolter, Anandkumar. Training Certifiably Robust Neural Networks with Efficient Local
Lipschitz Bounds. NeurIPS 2021.

On the ball of radius r around x, the input of a layer moves by at most $D = Kr$, K the constant so far. A
unit with weights w that is followed by a ReLU stays at zero if $z + \|w\|D \le 0$ (and a clipped one at its
maximum). Its row of this matrix and its column of the next are then left out:

$$ K \leftarrow K \cdot \|M_{out} W M_{in}\|_2 $$

with the proved norm of every sample's own masked matrix. Convolutions keep their global norm, but the pixels
that are constant after them leave the next dense layer. Beside the ball, a box around each layer's values is
followed (box.py); what it shows to be constant drops out as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lipcert.bounds.local_ball import carried, constant_beyond, reach, refuse_branches
from lipcert.bounds.proof import Bound
from lipcert.bounds.provers.factorisation import gram_uppers, scale_to_one
from lipcert.bounds.provers.rounding import SAFETY, U
from lipcert.bounds.rules.linear import executed_matrix
from lipcert.bounds.tracing.program import Program, Step
from lipcert.certificates.box import Box, box_after

# The largest side of masked Gram matrices that are proved per sample, and the numbers made at once.
_LARGEST_SIDE = 1024
_CHUNK = 1 << 25
_LARGEST_EXPONENT = 900  # beyond, scaling back may overflow or underflow


@dataclass(frozen=True)
class Local:
    """The constant of the features on each sample's ball, which features move, and how far at most."""

    constant: Tensor  # (B,), from above
    active: Tensor  # (B, D), 1 or 0
    steps: Box  # (B, D): from the features of the sample to those anywhere on the ball
    distance: Tensor  # (B,): the same as a length

    def on_cpu(self) -> Local:
        """Return the same numbers on the CPU."""
        steps = Box(self.steps.low.cpu(), self.steps.high.cpu())
        return Local(self.constant.cpu(), self.active.cpu(), steps, self.distance.cpu())


@dataclass(frozen=True)
class _Here:
    """The values and bounds between two layers; the first dimension is the batch."""

    value: Tensor
    error: Tensor  # (B,) rounding error of the value
    constant: Tensor  # (B,) of everything so far, on the ball
    active: Tensor  # shaped like the value: 0 where it is constant on the ball
    box: Box  # holds the values on the ball

    def steps(self) -> Box:
        """Return the box of the steps from the exact values of the samples: (B, D)."""
        return self.box.shifted(self.value, self.error.view(-1, *[1] * (self.value.ndim - 1)))


def balls_for(radii: Sequence[float]) -> tuple[float, ...]:
    """Return balls a little larger than these radii: certified means that the radius is strictly larger."""
    return tuple(radius * (1 + 1e-9) for radius in radii)


def local_bound(program: Program, bound: Bound, x: Tensor, radius: float) -> Local:
    """Bound the features of a sequence of layers, in float64, on balls of this radius."""
    refuse_branches(program)
    ones = x.new_ones(len(x))
    whole = Box.around(x, torch.full_like(x, SAFETY * radius))
    here = _Here(x, 0 * ones, ones, torch.ones_like(x), whole)
    following = [step.module for step in program.steps[1:]] + [nn.Identity()]
    for step, after, layer in zip(program.steps, following, bound.layers, strict=True):
        here = _advance(step, after, layer.upper, here, radius)
    constant = here.constant.clamp_max(bound.value)
    return Local(constant, here.active.flatten(1), here.steps(), SAFETY * radius * constant)


def _advance(step: Step, after: nn.Module, upper: float, before: _Here, radius: float) -> _Here:
    output = step.module.forward(before.value)
    roundoff = step.rule.roundoff(step.module, [before.value], output)
    error = SAFETY * (upper * before.error + roundoff + step.departure)
    active = carried(step.module, before.active, output)
    column = (-1, *[1] * (output.ndim - 1))
    distance = SAFETY * (before.constant * radius).view(column)
    far = SAFETY * (reach(step, upper, before.active, output) * distance + error.view(column))
    box = Box.around(output, far.expand_as(output)).overlap(box_after(step, before.box))
    edges = constant_beyond(after)
    if edges is not None:
        low, high = edges
        active = torch.where((box.high <= low) | (box.low >= high), 0.0, active)
    norm = masked_norm(step, upper, before.active, active)
    return _Here(output, error, before.constant * norm * (1 + 4 * U), active, box)


def masked_norm(step: Step, upper: float, before: Tensor, after: Tensor) -> Tensor:
    """Prove ‖M_out W M_in‖ per sample; use the global norm where the layer is not dense."""
    whole = after.new_full((len(after),), upper)
    matrix = executed_matrix(step.rule, step.module)
    if matrix is None or after.ndim != 2:
        return whole
    weight, exponent = scale_to_one(matrix)
    if weight is None or abs(exponent) > _LARGEST_EXPONENT or min(weight.shape) > _LARGEST_SIDE:
        return whole
    parts = max(1, _CHUNK // weight.numel())
    starts = range(0, len(after), parts)
    found = [_norms(weight, after[i : i + parts], before[i : i + parts]) for i in starts]
    return (torch.cat(found) * 2.0**exponent * (1 + 4 * U)).clamp_max(upper)


def _norms(weight: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Bound the norms of a matrix with entries at most 1, without some rows and columns: (B,)."""
    a = weight * rows[:, :, None] * columns[:, None, :]  # (B, n, m)
    a = a if weight.shape[0] <= weight.shape[1] else a.mT
    absolute = SAFETY * torch.linalg.vector_norm(a, dim=(1, 2)) ** 2
    squares = gram_uppers(a @ a.mT, terms=a.shape[2], absolute=absolute)
    return torch.nextafter(squares.sqrt(), torch.full_like(squares, torch.inf))
