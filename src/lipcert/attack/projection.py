"""Keep the points of an attack within its eps after rounding.

An attack that projects onto the sphere of radius eps returns points that rounding puts on either side of it,
and a point at eps(1 + 1e-16) says nothing about eps. Attacks therefore search a little inside the sphere, and
points that still lie outside are pulled in.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lipcert.attack.target import Target

# Each pull leaves twice the room of the one before; a point still outside after the last becomes the sample.
_PULLS = 4


def reach(target: Target, eps: float) -> float:
    """Return the radius to search so that rounding leaves the points within eps."""
    return max(eps - _rounding(target, eps), eps / 2)


def inside(target: Target, points: Tensor, eps: float) -> Tensor:
    """Pull points towards their samples until they lie within eps and within the bounds: (B, ...)."""
    # Measuring rounds as well: a point measured within the limit lies within eps exactly.
    limit = eps * (1 - (_size(target) + 8) * torch.finfo(torch.float64).eps)
    for pull in range(_PULLS):
        points = points.clamp(*target.bounds)
        distance = target.distance(points)  # (B,)
        if (distance <= limit).all():
            return points
        aim = max(limit - 2**pull * _rounding(target, eps), 0.0)
        pulled = target.x + target.spread(aim / distance) * (points - target.x)
        points = torch.where(target.spread(distance <= limit) > 0, points, pulled)
    points = points.clamp(*target.bounds)
    return torch.where(target.spread(target.distance(points) <= limit) > 0, points, target.x)


def _rounding(target: Target, eps: float) -> float:
    """Return how far off the sphere rounding may put a point, with room to spare.

    One unit in the last place per coordinate adds up to sqrt(d) of them; the projection adds units of eps.
    """
    largest = float(target.x.abs().max()) + eps
    return torch.finfo(target.x.dtype).eps * math.sqrt(_size(target)) * (largest + eps)


def _size(target: Target) -> int:
    return math.prod(target.x.shape[1:])
