"""Estimates of local constants for training: one constant per sample, without units that cannot move.

The proof of the same, and the idea, are in certificates/local.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, nn

from lipcert.bounds.local_ball import carried, constant_beyond, reach
from lipcert.bounds.rules.linear import LinearRule
from lipcert.bounds.tracing.program import Program, Step

# Power iterations per sample and dense layer, from the vector of the whole matrix.
_ITERATIONS = 3


def local_estimate(
    program: Program, vectors: Mapping[str, Tensor], x: Tensor, radius: float
) -> tuple[Tensor, Tensor]:
    """Return the features (B, D) and their constants on balls of this radius (B,), with gradients."""
    constant, value, active = x.new_ones(len(x)), x, torch.ones_like(x)
    following = [step.module for step in program.steps[1:]] + [nn.Identity()]
    for step, after in zip(program.steps, following, strict=True):
        output = step.module(value)
        vector = vectors.get(step.name)
        norm = step.rule.estimate(step.module, vector)
        before, active = active, _moving(step, after, output, active, norm, constant * radius)
        constant = constant * _masked(step, norm, vector, before, active)
        value = output
    return value, constant


@torch.no_grad()
def _moving(
    step: Step, after: nn.Module, output: Tensor, active: Tensor, norm: Tensor | float, distance: Tensor
) -> Tensor:
    """Return 1 where the output can move when the input moves that far, else 0."""
    edges = constant_beyond(after)
    moving = carried(step.module, active, output)
    if edges is None:
        return moving
    slack = reach(step, norm, active, output) * distance.view(-1, *[1] * (output.ndim - 1))
    low, high = edges
    return torch.where((output + slack <= low) | (output - slack >= high), 0.0, moving)


def _masked(
    step: Step, norm: Tensor | float, vector: Tensor | None, before: Tensor, after: Tensor
) -> Tensor | float:
    """Return the norm of every sample's own matrix where the layer is dense, else that of the layer."""
    if not isinstance(step.rule, LinearRule) or vector is None or after.ndim != 2:
        return norm
    rule, module = step.rule, cast(nn.Linear, step.module)

    def image(v: Tensor) -> Tensor:
        return after * rule.apply(module, before * v)

    v = vector.expand(len(before), -1)
    with torch.no_grad():
        for _ in range(_ITERATIONS):
            back = rule.adjoint(module, image(v), vector.shape)
            v = nn.functional.normalize(before * back, dim=1)
    found: Tensor = torch.linalg.vector_norm(image(v), dim=1)
    return found
