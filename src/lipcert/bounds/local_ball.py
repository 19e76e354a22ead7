"""The parts of a network that can change when its input stays in a ball, for local estimates and proofs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from lipcert.bounds.contract import plain_type
from lipcert.bounds.provers.rounding import SAFETY, TINY_ROOT, gamma
from lipcert.bounds.rules.linear import LinearRule
from lipcert.bounds.rules.shapes import Permute, Reshape
from lipcert.bounds.tracing.program import Program, Step
from lipcert.errors import InputError

# Layers that only move numbers.
MOVES = (nn.Flatten, nn.Unflatten, nn.Identity, Permute, Reshape)


def refuse_branches(program: Program) -> None:
    """Raise unless every layer has the previous one as its only input."""
    if not program.is_chain:
        raise InputError("local: a local bound needs a model that is one sequence of layers")


def constant_beyond(module: nn.Module) -> tuple[float, float] | None:
    """Return numbers below and above which an activation is constant; None if there are none."""
    kind = plain_type(module)
    if kind is nn.ReLU:
        return 0.0, torch.inf
    if kind in (nn.ReLU6, nn.Hardtanh):
        return float(module.min_val), float(module.max_val)  # type: ignore[arg-type]
    return None


def carried(module: nn.Module, active: Tensor, output: Tensor) -> Tensor:
    """Mark what can change in the output: the same entries if the layer moves or maps single entries."""
    if plain_type(module) in MOVES:
        moved: Tensor = module.forward(active)
        return moved
    return active if constant_beyond(module) is not None else torch.ones_like(output)


def reach(step: Step, upper: Tensor | float, active: Tensor, output: Tensor) -> Tensor:
    """Bound how far every unit can move when the input moves by 1; broadcasts to the output."""
    module: Any = step.module
    if isinstance(step.rule, LinearRule) and output.ndim == 2:
        weight: Tensor = module.weight
        return _from_above((active @ (weight * weight).T).sqrt(), weight.shape[1], upper)
    if plain_type(module) is nn.Conv2d:
        # Padding that repeats pixels may add up all weights of a kernel on one of them.
        order = 2 if module.padding_mode == "zeros" else 1
        kernels: Tensor = module.weight.flatten(1)
        lengths = torch.linalg.vector_norm(kernels, ord=order, dim=1)
        return _from_above(lengths, kernels.shape[1], upper)[:, None, None]
    return upper * output.new_ones((1,) * output.ndim)  # no unit moves farther than all together


def _from_above(lengths: Tensor, terms: int, upper: Tensor | float) -> Tensor:
    """Round up computed lengths of vectors with that many entries; `upper` covers longer sums."""
    return SAFETY * (lengths + terms * TINY_ROOT) + upper * gamma(8)
