"""Search where rounding decides: the last floats before the certified radius, in the worst direction found.

In exact arithmetic nothing within the radius is classified otherwise. But a network that is nearly linear
comes close, and there the order of a sum decides. Bisection comes first, then small random changes of every
coordinate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from lipcert.attack.base import ATTACKS, Attack, Budget
from lipcert.attack.margin import towards_rival
from lipcert.attack.target import FARTHEST, Target

# Rounding cannot reach a boundary beyond this many radii.
_CLOSE = 1.001


@ATTACKS.register("rounding")
class Rounding(Attack):
    """Search the last floats before the certified radius, where rounding decides; our own attack."""

    def sets(self, target: Target, radii: Sequence[float], size: Budget) -> Iterator[Tensor]:
        """Yield points about on the boundary and about on the certified sphere."""
        yield from among_rounding_errors(target, size.steps, size.tries)


def among_rounding_errors(target: Target, steps: int, tries: int, seed: int = 0) -> Iterator[Tensor]:
    """Yield sets of points, (B, ...) each, that lie near the boundary and near the certified sphere."""
    direction = towards_rival(target, target.radius.clamp_max(FARTHEST), steps, seed) - target.x
    low = torch.zeros_like(target.radius)
    high = torch.full_like(low, _CLOSE)
    reached = target.flipped(target.x + target.spread(high) * direction)
    for _ in range(60):
        middle = (low + high) / 2
        flipped = target.flipped(target.x + target.spread(middle) * direction)
        high, low = torch.where(flipped, middle, high), torch.where(flipped, low, middle)
    if not reached.any():
        return
    generator = torch.Generator().manual_seed(seed)
    unit = torch.finfo(target.x.dtype).eps
    for i in range(tries):
        # From the boundary to the sphere, or on the sphere if that is nearer; coordinates a few units off.
        scale = torch.minimum(high + (1 - high) * i / tries, torch.ones_like(high))
        points = target.x + target.spread(scale) * direction
        noise = torch.randint(-2, 3, points.shape, generator=generator).to(points)
        yield points + noise * unit * points.abs()
