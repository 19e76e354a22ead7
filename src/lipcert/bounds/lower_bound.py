r"""Bound the constant of a layer from below by two points, minus the possible rounding error.

The points are 0 and a vector v, so that their distance has no rounding error:

$$ K \ge (\|f(v) - f(0)\| - e(v) - e(0)) / \|v\| $$

where e bounds the layer's own rounding error, as in certificates.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lipcert.bounds.contract import sample_norm
from lipcert.bounds.krylov import first_vector, unit
from lipcert.bounds.provers.rounding import SAFETY, TINY_ROOT, U
from lipcert.bounds.tracing.program import Step

# Products with WᵀW for linear layers, and steps of gradient ascent for the others.
_PRODUCTS = 100
_STEPS = 5

# The length of v: short, since most activations are steepest at the origin.
_LENGTH = 2.0**-10


def lower_of(step: Step) -> float | None:
    """Bound the constant of a layer in float64 from below; None for a layer that joins values."""
    return stretch(step, witness(step)) if len(step.inputs) == 1 else None


def witness(step: Step) -> Tensor:
    """Return a vector that the layer stretches much: (1, …)."""
    v = first_vector(step.input_shapes[0], 0, torch.zeros((), dtype=torch.float64))
    if step.rule.has_vector:
        with torch.no_grad():
            v = step.rule.iterate(step.module, v, _PRODUCTS)
    else:
        for _ in range(_STEPS):
            v = unit(_ascent(step, v), otherwise=v)
    return _LENGTH * v[None]


def _ascent(step: Step, v: Tensor) -> Tensor:
    """Return the gradient of ‖f(v) − f(0)‖, which for a linear f is WᵀWv up to its length."""
    points = torch.stack([_LENGTH * v, torch.zeros_like(v)]).requires_grad_()
    image, origin = _images(step, points)
    (gradient,) = torch.autograd.grad(torch.linalg.vector_norm(image - origin.detach()), points)
    return gradient[0]


def _images(step: Step, points: Tensor) -> Tensor:
    output: Tensor = step.module.forward(points.clone())  # some layers work in place
    return output


@torch.no_grad()
def stretch(step: Step, v: Tensor) -> float:
    """Return ‖f(v) − f(0)‖/‖v‖, from below."""
    points = torch.cat([v, torch.zeros_like(v)])
    images = _images(step, points)
    change = images[:1] - images[1:]
    doubt = float(step.rule.roundoff(step.module, [points], images).sum()) + step.departure
    if doubt == 0 and not images[1].any() and torch.equal(_entries(change), _entries(v)):
        return 1.0  # entries are moved and none is changed: no norm has to be computed
    n = max(change.numel(), v.numel())
    # Norms of n rounded numbers, the difference and the quotient.
    down = 1 - (2 * n + 16) * U
    moved = down * float(torch.linalg.vector_norm(change)) - SAFETY * (doubt + n * TINY_ROOT)
    return not_less(down * moved / float(sample_norm(v)))


def not_less(value: float) -> float:
    """Return a lower bound of a quantity that is not negative; 0 where the value overflowed."""
    return value if 0 < value < math.inf else 0.0


def _entries(x: Tensor) -> Tensor:
    """Return the sizes of the entries that are not 0, in order."""
    return x[x != 0].abs().sort().values
