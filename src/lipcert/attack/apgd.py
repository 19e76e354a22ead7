"""Auto-PGD, the gradient attacks of AutoAttack: its authors' code, packaged as pyautoattack.

Croce, Hein. Reliable Evaluation of Adversarial Robustness with an Ensemble of Diverse Parameter-free Attacks.
ICML 2020.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from lipcert.attack.extra import needed
from lipcert.attack.target import Target

# The targeted DLR loss uses the four largest logits. Networks with fewer classes are attacked through the
# cross-entropy of the target class, whose gradient does not vanish when that class is unlikely.
_CLASSES_OF_DLR = 4


def apgd_ce(target: Target, eps: float, steps: int) -> Tensor:
    """Run Auto-PGD on the cross-entropy, within eps. A failed sample is returned unchanged: (B, ...)."""
    return _run(target, _attack("APGDAttack", target, eps, steps))


def apgd_t(target: Target, eps: float, steps: int, classes: int) -> Tensor:
    """Run targeted Auto-PGD, within eps, on one class after the other until a sample is misclassified.

    The classes with the largest logits come first. A sample on which all fail is returned unchanged: (B,
    ...).
    """
    attack = _attack("APGDAttack_targeted", target, eps, steps)
    goals = _rivals(target)  # (B, N - 1)
    if goals.shape[1] + 1 < _CLASSES_OF_DLR:
        attack.loss = "ce-targeted"
    points = target.x.clone()
    for goal in goals.T[:classes]:
        resists = ~target.flipped(points)
        if not resists.any():
            break
        attack.y_target = goal[resists]
        points[resists] = _run(target.where(resists), attack)
    return points


@torch.no_grad()
def _rivals(target: Target) -> Tensor:
    """Return all classes but the predicted one, largest logit first: (B, N - 1)."""
    logits = target.network(target.x).scatter(1, target.prediction[:, None], -torch.inf)
    return logits.argsort(dim=1, descending=True)[:, :-1]


def _attack(name: str, target: Target, eps: float, steps: int) -> Any:
    """Set up an attack. It searches the unit cube: all coordinates are scaled alike, and eps with them."""
    low, high = target.bounds
    return getattr(needed("pyautoattack.autopgd_base"), name)(
        lambda unit: target.network(_placed(target, unit)),
        n_iter=steps,
        norm="L2",
        eps=eps / (high - low),
        device=target.x.device,
    )


def _run(target: Target, attack: Any) -> Tensor:
    """Search once. The random start is always the same."""
    low, high = target.bounds
    # Scaled in float64, so that a float32 network is given exactly its samples.
    unit = ((target.x.double() - low) / (high - low)).contiguous()
    attack.init_hyperparam(unit)
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")  # pyautoattack warns of gradients that are zero
        torch.manual_seed(0)
        _, resisted, _, found = attack.attack_single_run(unit, target.prediction)
    points = _placed(target, found.detach())
    failed = (target.spread(resisted) > 0) | ~torch.isfinite(points)
    return torch.where(failed, target.x, points)


def _placed(target: Target, unit: Tensor) -> Tensor:
    """Map points of the unit cube to inputs, in the precision of the network."""
    low, high = target.bounds
    return (low + (high - low) * unit).to(target.x.dtype)
