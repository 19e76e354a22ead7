"""The prover between exact and fast: Fourier along one axis, the matrix itself along the other."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from lipcert.bounds.provers.convolutions.base import LARGE, PROVERS, Prover, phases, with_padding, wraps_once
from lipcert.bounds.provers.geometry import Geometry
from lipcert.bounds.provers.gram import EXACT_SIDE
from lipcert.bounds.provers.strips import Strip, strip_norm_upper
from lipcert.types import Effort

# What the strips of a large kernel may cost, in multiplications, and what they may if one is in a hurry.
_COST = 4 * EXACT_SIDE**3
_FAST_COST = EXACT_SIDE**3 // 4


@PROVERS.register("strips")
class StripProver(Prover):
    """The bound by strips is half as far above the truth as the Fourier bound, for kernels that are large."""

    looseness: ClassVar[int] = 1

    def can_prove(self, g: Geometry) -> bool:
        """Return True but for circular convolutions, for which the Fourier bound is exact."""
        return not wraps_once(g)

    def is_affordable(self, weight: Tensor, g: Geometry, effort: Effort) -> bool:
        """Compare the multiplications with what the effort allows; small kernels need no strips."""
        if g.kernel_share <= LARGE:
            return False
        parts = phases(weight, g, g.stride)
        return len(parts) * Strip.of(g).cost(parts[0]) <= (_FAST_COST if effort == "fast" else _COST)

    def upper(self, weight: Tensor, g: Geometry) -> float:
        """Return the largest norm of a group, times that of the padding."""
        strip = Strip.of(g)
        return with_padding(max(strip_norm_upper(part, strip) for part in phases(weight, g, g.stride)), g)
