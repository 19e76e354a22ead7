"""Attacks from foolbox: independent code, so that we do not repeat our own mistakes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lipcert.attack.extra import needed

if TYPE_CHECKING:
    from lipcert.attack.target import Target


def pgd(target: Target, eps: float, steps: int) -> Tensor:
    """Run projected gradient descent on the cross-entropy, within eps."""
    return _run(target, "L2PGD", steps, eps)


def deepfool(target: Target, steps: int) -> Tensor:
    """Take Newton steps to the nearest linearised boundary."""
    return _run(target, "L2DeepFoolAttack", steps)


def fmn(target: Target, steps: int) -> Tensor:
    """Run the fast minimum-norm attack."""
    return _run(target, "L2FMNAttack", steps)


def brendel_bethge(target: Target, steps: int) -> Tensor:
    """Walk along the boundary towards the sample, from where DeepFool crossed it."""
    start = deepfool(target, steps)
    crossed = target.flipped(start)
    points = target.x.clone()
    if crossed.any():
        some = target.where(crossed)
        points[crossed] = _run(some, "L2BrendelBethgeAttack", steps, starting_points=start[crossed])
    return points


class _Logits(nn.Module):
    """The logits as a module, which foolbox requires."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._network = target.network

    def forward(self, x: Tensor) -> Tensor:
        return self._network(x)


def _run(target: Target, name: str, steps: int, eps: float | None = None, **settings: Any) -> Tensor:
    foolbox = needed("foolbox")
    needed("numba")  # Brendel-Bethge compiles with numba
    model = foolbox.PyTorchModel(_Logits(target).eval(), bounds=target.bounds, device="cpu")
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")  # numba warns that it compiles
        torch.manual_seed(0)
        attack = getattr(foolbox.attacks, name)(steps=steps)
        _, points, _ = attack(model, target.x, target.prediction, epsilons=eps, **settings)
    found: Tensor = points
    # An attack that failed may leave NaN behind.
    return torch.where(torch.isfinite(found), found, target.x)
