"""Targeted Auto-PGD, an attack of AutoAttack."""

from __future__ import annotations

import torch
from torch import Tensor

from lipcert.attack.autopgd_run import autopgd_points, prepared
from lipcert.attack.base import ATTACKS, Budget, WithinEps
from lipcert.attack.target import Target

# The targeted DLR loss uses the four largest logits. Networks with fewer classes are attacked through the
# cross-entropy of the target class, whose gradient does not vanish when that class is unlikely.
_CLASSES_OF_DLR = 4


@ATTACKS.register("apgd-t")
class APGDT(WithinEps):
    """Run AutoAttack's targeted Auto-PGD on one class after the other, until a sample gives in.

    The classes with the largest logits come first.
    """

    def within(self, target: Target, eps: float, size: Budget) -> Tensor:
        """Return the points found; where all classes fail, the sample itself: (B, ...)."""
        attack = prepared("APGDAttack_targeted", target, eps, size.steps)
        goals = _rivals(target)  # (B, N - 1)
        if goals.shape[1] + 1 < _CLASSES_OF_DLR:
            attack.loss = "ce-targeted"
        points = target.x.clone()
        for goal in goals.T[: size.classes]:
            resists = ~target.flipped(points)
            if not resists.any():
                break
            attack.y_target = goal[resists]
            points[resists] = autopgd_points(target.where(resists), attack)
        return points


@torch.no_grad()
def _rivals(target: Target) -> Tensor:
    """Return all classes but the predicted one, largest logit first: (B, N - 1)."""
    logits = target.network(target.x).scatter(1, target.prediction[:, None], -torch.inf)
    return logits.argsort(dim=1, descending=True)[:, :-1]
