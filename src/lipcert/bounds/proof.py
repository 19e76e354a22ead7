"""The proved bound of a whole model: the product of its layers' bounds, rounded up."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from lipcert.bounds.contract import Proof
from lipcert.bounds.fidelity.guards import refuse_unsettled
from lipcert.bounds.provers.rounding import mul_up
from lipcert.bounds.tracing.program import Program, Step
from lipcert.errors import InputError, UnknownBoundError
from lipcert.suggestions import expected_one_of
from lipcert.types import Effort, Shape


@dataclass(frozen=True)
class LayerBound:
    """One step of the model and its proved Lipschitz constant."""

    name: str
    path: str
    kind: str
    shape: Shape  # the output's
    upper: float
    prover: str
    seconds: float


@dataclass(frozen=True)
class Bound:
    """A proved Lipschitz constant and the bounds of its layers."""

    value: float
    layers: tuple[LayerBound, ...]


def _proof(step: Step, effort: Effort) -> Proof:
    """Prove one step; errors name its place."""
    refuse_unsettled(step.path, step.module)
    try:
        proof = step.rule.upper(step.module, step.input_shapes[0], effort)
    except (InputError, UnknownBoundError, NotImplementedError) as error:
        raise type(error)(f"{step.path}: {error}") from None
    if not proof.value >= 0:
        raise InputError(f"{step.path}: expected finite weights, got a bound of {proof.value}")
    return proof


def prove(program: Program, effort: Effort = "auto") -> Bound:
    """Prove the bound of a traced model."""
    if effort not in get_args(Effort):
        raise InputError(f"effort: {expected_one_of(get_args(Effort), effort)}")
    effort = layer_effort(effort)
    layers = []
    for step in program.steps:
        start = time.perf_counter()
        proof = _proof(step, effort)
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
    constants = value_constants(program, [layer.upper for layer in layers])
    return Bound(constants[program.result], tuple(layers))


def layer_effort(effort: Effort) -> Effort:
    """Return the effort for single layers: a tight proof is an exact one that looks at several as well."""
    return "exact" if effort == "tight" else effort


def value_constants(program: Program, uppers: Sequence[float]) -> dict[str, float]:
    """Return the proved constant of every value, by the name of its step, from those of the layers."""
    constants = {program.source: 1.0}
    for step, upper in zip(program.steps, uppers, strict=True):
        joined = step.rule.join_upper([constants[i] for i in step.inputs])
        constants[step.name] = joined if upper == 1 else mul_up(joined, upper)
    return constants
