"""The fast prover for many channels: the symbol's norms by Gram iteration."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from lipcert.bounds.provers.convolutions.base import PROVERS
from lipcert.bounds.provers.convolutions.by_fourier import FourierProver
from lipcert.bounds.provers.fourier import Largest
from lipcert.bounds.provers.geometry import Geometry
from lipcert.bounds.provers.squaring import largest_by_squaring
from lipcert.types import Effort

# The side of a symbol from which squaring is quicker than factorising.
_LEAST_SIDE = 24


@PROVERS.register("gram-iteration")
class GramIterationProver(FourierProver):
    """The Fourier bound in less time: most frequencies are left after a few squarings, without a factor."""

    looseness: ClassVar[int] = 2
    replaces: ClassVar[str | None] = "fourier"

    @property
    def largest(self) -> Largest:
        """Return what bounds the symbols' norms."""
        return largest_by_squaring

    def is_affordable(self, weight: Tensor, g: Geometry, effort: Effort) -> bool:
        """Return whether the symbol is large enough that squaring is quicker."""
        return min(weight.shape[0] // g.groups, weight.shape[1] * g.stride[0] * g.stride[1]) >= _LEAST_SIDE
