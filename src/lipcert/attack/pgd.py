"""Projected gradient descent, by foolbox."""

from __future__ import annotations

from torch import Tensor

from lipcert.attack.base import ATTACKS, Budget, WithinEps
from lipcert.attack.foolbox_run import foolbox_points
from lipcert.attack.target import Target


@ATTACKS.register("pgd")
class PGD(WithinEps):
    """Run foolbox's projected gradient descent on the cross-entropy."""

    def within(self, target: Target, eps: float, size: Budget) -> Tensor:
        """Return the points of the last step: (B, ...)."""
        return foolbox_points(target, "L2PGD", size.steps, eps)
