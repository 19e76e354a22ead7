"""Run Auto-PGD, the gradient attacks of AutoAttack: its authors' code, packaged as pyautoattack.

Croce, Hein. Reliable Evaluation of Adversarial Robustness with an Ensemble of Diverse Parameter-free Attacks.
ICML 2020.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from lipcert.attack.extra import always_the_same, needed
from lipcert.attack.target import Target


def prepared(name: str, target: Target, eps: float, steps: int) -> Any:
    """Set up an attack. It searches the unit cube: all coordinates are scaled alike, and eps with them."""
    low, high = target.bounds
    return getattr(needed("pyautoattack.autopgd_base"), name)(
        lambda unit: target.network(_placed(target, unit)),
        n_iter=steps,
        norm="L2",
        eps=eps / (high - low),
        device=target.x.device,
    )


def autopgd_points(target: Target, attack: Any) -> Tensor:
    """Search once, always from the same random start. Where it fails, return the sample: (B, ...)."""
    low, high = target.bounds
    # Scaled in float64, so that a float32 network is given exactly its samples.
    unit = ((target.x.double() - low) / (high - low)).contiguous()
    attack.init_hyperparam(unit)
    with warnings.catch_warnings(), always_the_same(target.x.device):
        warnings.simplefilter("ignore")  # it announces gradients that are zero
        _, resisted, _, found = attack.attack_single_run(unit, target.prediction)
    points = _placed(target, found.detach())
    failed = (target.spread(resisted) > 0) | ~torch.isfinite(points)
    return torch.where(failed, target.x, points)


def _placed(target: Target, unit: Tensor) -> Tensor:
    """Map points of the unit cube to inputs, in the precision of the network."""
    low, high = target.bounds
    return (low + (high - low) * unit).to(target.x.dtype)
