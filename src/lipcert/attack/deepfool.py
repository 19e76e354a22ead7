"""DeepFool, by foolbox."""

from __future__ import annotations

from torch import Tensor

from lipcert.attack.base import ATTACKS, Budget, Nearest
from lipcert.attack.foolbox_run import foolbox_points
from lipcert.attack.target import Target


@ATTACKS.register("deepfool")
class DeepFool(Nearest):
    """Take Newton steps to the nearest linearised boundary, by foolbox."""

    def nearest(self, target: Target, size: Budget) -> Tensor:
        """Return the points found: (B, ...)."""
        return foolbox_points(target, "L2DeepFoolAttack", size.steps)
