"""The fast minimum-norm attack, by foolbox."""

from __future__ import annotations

from torch import Tensor

from lipcert.attack.base import ATTACKS, Budget, Nearest
from lipcert.attack.foolbox_run import foolbox_points
from lipcert.attack.target import Target


@ATTACKS.register("fmn")
class FMN(Nearest):
    """Run foolbox's fast minimum-norm attack."""

    def nearest(self, target: Target, size: Budget) -> Tensor:
        """Return the points found: (B, ...)."""
        return foolbox_points(target, "L2FMNAttack", size.steps)
