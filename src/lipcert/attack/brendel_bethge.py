"""The attack of Brendel and Bethge, by foolbox."""

from __future__ import annotations

from torch import Tensor

from lipcert.attack.base import ATTACKS, Budget, Nearest
from lipcert.attack.deepfool import DeepFool
from lipcert.attack.foolbox_run import foolbox_points
from lipcert.attack.target import Target


@ATTACKS.register("brendel-bethge")
class BrendelBethge(Nearest):
    """Walk along the boundary towards the sample, from where DeepFool crossed it, by foolbox."""

    def nearest(self, target: Target, size: Budget) -> Tensor:
        """Return the points found; the sample itself where DeepFool failed: (B, ...)."""
        start = DeepFool().nearest(target, size)
        crossed = target.flipped(start)
        points = target.x.clone()
        if crossed.any():
            some = target.where(crossed)
            points[crossed] = foolbox_points(
                some, "L2BrendelBethgeAttack", size.steps, starting_points=start[crossed]
            )
        return points
