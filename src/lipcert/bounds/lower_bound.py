r"""How much a layer stretches at least: by two points, less whatever rounding may have added.

The points are 0 and a vector v, so that no rounding is in their distance:

$$ K \ge (\|f(v) - f(0)\| - e(v) - e(0)) / \|v\| $$

where e bounds the layer's own roundings, as in certificates.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lipcert.bounds.contract import sample_norm
from lipcert.bounds.krylov import first_vector, unit
from lipcert.bounds.provers.rounding import SAFETY, TINY_ROOT, U
from lipcert.bounds.tracing.program import Step

# Products with WᵀW of linear layers, and steps of gradient ascent of the others.
_PRODUCTS = 100
_STEPS = 5

# Of v: short, since most activations are steepest at the origin.
_LENGTH = 2.0**-10


def lower_of(step: Step) -> float | None:
    """The constant of a layer in float64, from below; None where it joins values and has none of its own."""
    return stretch(step, witness(step)) if len(step.inputs) == 1 else None


def witness(step: Step) -> Tensor:
    """A vector that the layer stretches much: (1, …)."""
    v = first_vector(step.input_shapes[0], 0, torch.zeros((), dtype=torch.float64))
    if step.rule.has_vector:
        with torch.no_grad():
            v = step.rule.iterate(step.module, v, _PRODUCTS)
    else:
        for _ in range(_STEPS):
            v = unit(_ascent(step, v), otherwise=v)
    return _LENGTH * v[None]


def _ascent(step: Step, v: Tensor) -> Tensor:
    """The gradient of ‖f(v) − f(0)‖, which is WᵀWv of a linear f, but for its length."""
    points = torch.stack([_LENGTH * v, torch.zeros_like(v)]).requires_grad_()
    image, origin = _images(step, points)
    (gradient,) = torch.autograd.grad(torch.linalg.vector_norm(image - origin.detach()), points)
    return gradient[0]


def _images(step: Step, points: Tensor) -> Tensor:
    output: Tensor = step.module.forward(points.clone())  # some work in place
    return output


@torch.no_grad()
def stretch(step: Step, v: Tensor) -> float:
    """‖f(v) − f(0)‖/‖v‖, from below."""
    points = torch.cat([v, torch.zeros_like(v)])
    images = _images(step, points)
    change = images[:1] - images[1:]
    doubt = float(step.rule.roundoff(step.module, [points], images).sum())
    if doubt == 0 and not images[1].any() and torch.equal(_entries(change), _entries(v)):
        return 1.0  # entries are moved, none is changed: no norm has to be computed
    n = max(change.numel(), v.numel())
    # Norms of n numbers, themselves rounded, the difference and the quotient.
    down = 1 - (2 * n + 16) * U
    moved = down * float(torch.linalg.vector_norm(change)) - SAFETY * (doubt + n * TINY_ROOT)
    return not_less(down * moved / float(sample_norm(v)))


def not_less(value: float) -> float:
    """A lower bound of something that is not negative; 0 where it overflowed."""
    return value if 0 < value < math.inf else 0.0


def _entries(x: Tensor) -> Tensor:
    """Sizes of those that are not 0, in order."""
    return x[x != 0].abs().sort().values
