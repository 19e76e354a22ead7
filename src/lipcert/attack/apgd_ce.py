"""Auto-PGD on the cross-entropy, an attack of AutoAttack."""

from __future__ import annotations

from torch import Tensor

from lipcert.attack.autopgd_run import autopgd_points, prepared
from lipcert.attack.base import ATTACKS, Budget, WithinEps
from lipcert.attack.target import Target


@ATTACKS.register("apgd-ce")
class APGDCE(WithinEps):
    """Run AutoAttack's Auto-PGD on the cross-entropy."""

    def within(self, target: Target, eps: float, size: Budget) -> Tensor:
        """Return the points found; where it fails, the sample itself: (B, ...)."""
        return autopgd_points(target, prepared("APGDAttack", target, eps, size.steps))
