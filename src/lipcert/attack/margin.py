"""Gradient attack on the margin: towards a rival, within a separate ball around every sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from lipcert.attack.base import ATTACKS, Budget, WithinEps
from lipcert.attack.target import FARTHEST, Target

# How much of the certified radius an attack on the claim may use.
_INSIDE = 0.999


@ATTACKS.register("margin")
class Margin(WithinEps):
    """Ascend towards the rival by its gradient, inside the certified radius as well; our own attack."""

    def sets(self, target: Target, radii: Sequence[float], size: Budget) -> Iterator[Tensor]:
        """Yield a set inside every certified radius, then one per radius."""
        yield towards_rival(target, _INSIDE * target.radius.clamp_max(FARTHEST), size.steps)
        yield from super().sets(target, radii, size)

    def within(self, target: Target, eps: float, size: Budget) -> Tensor:
        """Return the points where the rival gains most: (B, ...)."""
        return towards_rival(target, torch.full_like(target.radius, eps), size.steps)


def towards_rival(target: Target, limit: Tensor, steps: int, seed: int = 0) -> Tensor:
    """Return points within `limit` (B,) of the samples where the certificate's rival gains most: (B, ...)."""
    limit = target.spread(limit)
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(target.x.shape, generator=generator, dtype=target.x.dtype)
    points = target.x + limit * _unit(start.to(target.x.device))
    best, most = points, points.new_full((len(target),), -torch.inf)
    for step in range(steps):
        gain, gradient = _gain(target, points)
        better = gain > most
        best, most = torch.where(target.spread(better) > 0, points, best), torch.maximum(gain, most)
        moved = points - target.x + (1 - step / steps) * limit * _unit(gradient)
        points = target.x + moved * (limit / _length(moved)).clamp_max(1.0)
    gain, _ = _gain(target, points)
    return torch.where(target.spread(gain > most) > 0, points, best)


def _gain(target: Target, points: Tensor) -> tuple[Tensor, Tensor]:
    """Return f_rival − f_prediction, (B,), and its gradient at the points."""
    points = points.detach().requires_grad_()
    logits = target.network(points)
    ours = logits.gather(1, target.prediction[:, None]).squeeze(1)
    gain = logits.gather(1, target.rival[:, None]).squeeze(1) - ours
    (gradient,) = torch.autograd.grad(gain.sum(), points)
    return gain.detach(), gradient


def _length(x: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(x.flatten(1), dim=1).clamp_min(torch.finfo(x.dtype).tiny)
    return length.view(-1, *[1] * (x.ndim - 1))


def _unit(x: Tensor) -> Tensor:
    return x / _length(x)
