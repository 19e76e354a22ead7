"""The dense end of a network: dense layers and activations in turns, after the last layer of another kind."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lipcert.bounds.contract import plain_type
from lipcert.bounds.proof import Bound, value_constants
from lipcert.bounds.rules.linear import executed_matrix
from lipcert.bounds.tracing.program import Program, Step
from lipcert.certificates.tails.sector import Sector

# Layers that change nothing in a vector; in training mode Dropout has no proof that leads here.
_NOTHING = (nn.Identity, nn.Dropout, nn.Flatten)


@dataclass(frozen=True)
class DenseTail:
    """Dense layers, each followed by an activation with known slopes, and the rows of the head."""

    entry: float  # the proved constant of everything before
    weights: tuple[Tensor, ...]  # float64, on the CPU
    sectors: tuple[Sector, ...]
    head: Tensor  # (N, D)

    @property
    def widest(self) -> int:
        """Return the largest number of values after a layer."""
        return max(len(weight) for weight in self.weights)

    @classmethod
    def of(cls, features: Program, bound: Bound, head: Tensor) -> DenseTail | None:
        """Return the dense end of a network before its head; None where it has none."""
        steps = {step.name: step for step in features.steps}
        constants = value_constants(features, [layer.upper for layer in bound.layers])
        place, weights, sectors = features.result, list[Tensor](), list[Sector]()
        while (found := _before(steps, place)) is not None:
            place, weight, sector = found
            weights.insert(0, weight)
            sectors.insert(0, sector)
        if not weights:
            return None
        numbers = [*weights, head]
        if not math.isfinite(constants[place]) or not all(torch.isfinite(w).all() for w in numbers):
            return None
        return cls(constants[place], tuple(weights), tuple(sectors), head)


def _before(steps: dict[str, Step], place: str) -> tuple[str, Tensor, Sector] | None:
    """Return the input of a dense layer and the activation that make this value, and what they are."""
    activation = steps.get(_moved(steps, place))
    if activation is None or len(activation.shape) != 1:
        return None
    sector = Sector.of(activation.module, activation.shape[0])
    dense = steps.get(_moved(steps, activation.inputs[0]))
    if sector is None or dense is None or len(dense.input_shapes[0]) != 1:
        return None
    matrix = executed_matrix(dense.rule, dense.module)
    return None if matrix is None else (dense.inputs[0], matrix.double().cpu(), sector)


def _moved(steps: dict[str, Step], place: str) -> str:
    """Return the value that this one equals, before layers that change nothing."""
    while (step := steps.get(place)) is not None and plain_type(step.module) in _NOTHING:
        if len(step.input_shapes[0]) != 1 or len(step.shape) != 1:
            break
        place = step.inputs[0]
    return place
