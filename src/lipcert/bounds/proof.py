"""The proved bound of a whole model: the product of its layers' bounds, rounded up."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from torch import nn

from lipcert.bounds.contract import Proof, refuse_unsettled
from lipcert.bounds.graph import Program, Step, trace
from lipcert.bounds.rounding import mul_up
from lipcert.errors import InputError, UnknownBoundError
from lipcert.types import Shape

Effort = Literal["auto", "exact", "fast"]


@dataclass(frozen=True)
class LayerBound:
    """One step of the model and its proved Lipschitz constant."""

    name: str
    path: str
    kind: str
    shape: Shape  # of the output
    upper: float
    prover: str
    seconds: float


@dataclass(frozen=True)
class Bound:
    """A proved Lipschitz constant and the layers it is made of."""

    value: float
    layers: tuple[LayerBound, ...]


def upper(module: nn.Module, input_shape: Sequence[int], effort: Effort = "auto") -> Bound:
    """The L2 Lipschitz constant of a module, proved: never below the truth.

    Example:
        >>> import torch
        >>> layer = nn.Linear(2, 2, bias=False)
        >>> _ = torch.nn.init.eye_(layer.weight)
        >>> upper(nn.Sequential(layer, nn.ReLU()), input_shape=(2,)).value
        1.0000000...
    """
    return prove(trace(module, input_shape), effort)


def _proof(step: Step, effort: Effort) -> Proof:
    """The proof of one step; whatever is wrong with it is said with its place."""
    refuse_unsettled(step.path, step.module)
    try:
        proof = step.rule.upper(step.module, step.input_shapes[0], effort)
    except (InputError, UnknownBoundError, NotImplementedError) as error:
        raise type(error)(f"{step.path}: {error}") from None
    if not proof.value >= 0:
        raise InputError(f"{step.path}: expected finite weights, got a bound of {proof.value}")
    return proof


def prove(program: Program, effort: Effort = "auto") -> Bound:
    """The proved bound of a traced model."""
    if effort not in get_args(Effort):
        raise InputError(f"effort: expected one of {get_args(Effort)}, got {effort!r}")
    constants = {program.source: 1.0}
    layers = []
    for step in program.steps:
        start = time.perf_counter()
        proof = _proof(step, effort)
        joined = step.rule.join_upper([constants[i] for i in step.inputs])
        constants[step.name] = joined if proof.value == 1 else mul_up(joined, proof.value)
        layers.append(
            LayerBound(
                name=step.name,
                path=step.path,
                kind=type(step.module).__name__,
                shape=step.shape,
                upper=proof.value,
                prover=proof.prover,
                seconds=time.perf_counter() - start,
            )
        )
    return Bound(constants[program.result], tuple(layers))
