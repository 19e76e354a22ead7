r"""Evaluate in float64 with a bound of the error, and of the error of float32 nearby.

The recursion follows the program, with proved constants σ and the rounding errors of every layer:

- E bounds the distance of the computed float64 features from the exact ones at x;
- a + b·r bounds, for every x' within r of x, the distance of the float32 features from the exact features
    at x': a layer's float32 rounding errors grow with its computed input, which lies within E + Pr + (a + br)
    of the float64 one, where P is the proved constant of everything before. See docs/proofs.md, theorems 3,
    5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.bounds.growth import Growth
from lipcert.bounds.proof import Bound
from lipcert.bounds.provers.rounding import SAFETY, TINY, TINY32, U, mul_up
from lipcert.bounds.tracing.program import Program, Step
from lipcert.errors import InputError

# γ of float32 over γ of float64 for sums of up to `LONGEST` products: slightly more than 2^29.
FLOAT32 = 2.0**29 * 1.01
LONGEST = 1 << 17

# Below this sum of absolute values float32 cannot overflow: no intermediate number, squares and terms of
# a series included, is above 2^127.
LARGEST32 = 2.0**60


@dataclass(frozen=True)
class Arithmetic:
    """The precision of an evaluation: its γ over that of float64, and room for rounding the bounds."""

    unit: float
    safety: float
    tiny: float  # the loss of one operation to underflow
    least: float  # the loss of the bounds themselves per entry

    def underflow(self, step: Step) -> float:
        """Return the loss of a layer to underflow; float64's is part of every `roundoff`."""
        if self.unit == 1:
            return 0.0
        return float(math.prod(step.shape)) * float(step.rule.float32_underflow(step.module))


DOUBLE = Arithmetic(1.0, SAFETY, TINY, 0.0)
# Bounds of rounding errors are sums of up to LONGEST positive numbers, off by 0.8 % at most, and their roots.
# Norms lose up to 2^-63 per entry to squares that underflow. γ is 2^-36 at most, which makes 2^-99 of a bound
# per entry, and 2^-82 where the bound is multiplied by norms of weights below 2^17.
SINGLE = Arithmetic(FLOAT32, 1.02, TINY32, 2.0**-82)


@dataclass(frozen=True)
class Deployed:
    """The distance of float32 features from the exact ones within r is at most a + b·r; P for the features.

    Nothing overflows within `limit`.
    """

    a: Tensor  # (B,)
    b: Tensor  # (B,)
    lipschitz: float
    limit: Tensor  # (B,)


@dataclass(frozen=True)
class Evaluation:
    """Features, (B, D), their distance from the exact ones, and the additional error of float32."""

    features: Tensor
    error: Tensor  # (B,)
    deployed: Deployed | None = None

    def on_cpu(self) -> Evaluation:
        """Return the same numbers on the CPU."""
        d = self.deployed
        moved = None if d is None else Deployed(d.a.cpu(), d.b.cpu(), d.lipschitz, d.limit.cpu())
        return Evaluation(self.features.cpu(), self.error.cpu(), moved)


def joined(parts: Sequence[Evaluation]) -> Evaluation:
    """Join the evaluations of the pieces of a batch."""
    features, error = (torch.cat([getattr(p, name) for p in parts]) for name in ("features", "error"))
    pieces = [p.deployed for p in parts if p.deployed is not None]
    if not pieces:
        return Evaluation(features, error)
    a, b, limit = (torch.cat([getattr(d, name) for d in pieces]) for name in ("a", "b", "limit"))
    return Evaluation(features, error, Deployed(a, b, pieces[0].lipschitz, limit))


def plain(program: Program, x: Tensor) -> Tensor:
    """Compute the features without bounds of rounding errors."""
    return values_of(program, x)[program.result]


def values_of(program: Program, x: Tensor) -> dict[str, Tensor]:
    """Compute the value of every step without bounds of rounding errors."""
    values = {program.source: x}
    for step in program.steps:
        values[step.name] = step.run([values[i] for i in step.inputs])
    return values


def evaluate(
    program: Program,
    bound: Bound,
    x: Tensor,
    float32: bool,
    own: Arithmetic = DOUBLE,
    growths: Sequence[Growth | None] = (),
) -> Evaluation:
    """Compute the features and their errors, layer by layer, in the arithmetic of `x` and the layers.

    `growths` save a second pass through the layers. They suffice in float64; float32 needs the second pass.
    """
    zero = x.new_zeros(x.shape[0])
    start = Deployed(zero, zero, 1.0, zero + math.inf)
    done = {program.source: Evaluation(x, zero, start if float32 else None)}
    known = growths or (None,) * len(program.steps)
    for step, layer, growth in zip(program.steps, bound.layers, known, strict=True):
        before = [done[name] for name in step.inputs]
        inputs = [it.features for it in before]
        roundoff = growth(inputs[0]) if growth else None
        output = step.run(inputs)
        if roundoff is None:
            roundoff = step.rule.roundoff(step.module, inputs, output)
        entries = sum(math.prod(value.shape[1:]) for value in (*inputs, output))
        roundoff = roundoff + own.least * entries
        error = step.rule.join_errors([it.error for it in before])
        deployed = [it.deployed for it in before if it.deployed is not None]
        done[step.name] = Evaluation(
            output,
            own.safety * (layer.upper * error + own.unit * roundoff + own.underflow(step) + step.departure),
            _deployed(step, layer.upper, roundoff, error, deployed, own.safety, growth) if float32 else None,
        )
    return done[program.result]


def _deployed(
    step: Step,
    upper: float,
    roundoff: Tensor,
    error: Tensor,
    before: list[Deployed],
    safety: float = SAFETY,
    growth: Growth | None = None,
) -> Deployed:
    """Compute one layer of the float32 recursion."""
    a = step.rule.join_errors([d.a for d in before])
    b = step.rule.join_errors([d.b for d in before])
    lipschitz = step.rule.join_upper([d.lipschitz for d in before])
    # How much faster than at the float64 input the rounding errors may grow.
    gain = growth.slope if growth else U * step.rule.roundoff_gain(step.module)
    products = step.rule.products(step.module)
    if products > LONGEST:
        raise InputError(f"{step.path}: float32 sums of more than {LONGEST} products are not bounded")
    underflow = SINGLE.underflow(step)
    # Rounding errors are at least U times the sums of absolute values in which they occur.
    here = no_overflow((roundoff + gain * (error + a)) / U, gain / U * (lipschitz + b))
    return Deployed(
        safety * (upper * a + FLOAT32 * (roundoff + gain * (error + a)) + underflow + step.departure),
        safety * (upper * b + FLOAT32 * gain * (lipschitz + b)),
        mul_up(lipschitz, upper),
        torch.stack([here, *(d.limit for d in before)]).amin(0),
    )


def no_overflow(size: Tensor, growth: Tensor) -> Tensor:
    """Return the largest r for which size + growth·r does not overflow float32; negative if there is none."""
    room = LARGEST32 - SAFETY * size
    limit = torch.where(growth > 0, room / (SAFETY * growth), torch.where(room > 0, torch.inf, -1.0))
    return torch.where(limit.isnan(), -1.0, limit)  # both infinite
