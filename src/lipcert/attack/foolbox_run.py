"""Run attacks of foolbox: they are written by others, so that a mistake of ours is not made twice."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lipcert.attack.extra import always_the_same, needed

if TYPE_CHECKING:
    from lipcert.attack.target import Target


class _Logits(nn.Module):
    """The logits as a module, which foolbox requires."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._network = target.network

    def forward(self, x: Tensor) -> Tensor:
        return self._network(x)


def foolbox_points(
    target: Target, name: str, steps: int, eps: float | None = None, **settings: Any
) -> Tensor:
    """Return the points that an attack of foolbox finds, always from the same random start: (B, ...)."""
    foolbox = needed("foolbox")
    needed("numba")  # Brendel-Bethge compiles with numba
    model = foolbox.PyTorchModel(_Logits(target).eval(), bounds=target.bounds, device=target.x.device)
    with warnings.catch_warnings(), always_the_same(target.x.device):
        warnings.simplefilter("ignore")  # numba warns that it compiles
        attack = getattr(foolbox.attacks, name)(steps=steps)
        _, points, _ = attack(model, target.x, target.prediction, epsilons=eps, **settings)
    found: Tensor = points
    # An attack that failed may leave NaN behind.
    return torch.where(torch.isfinite(found), found, target.x)
