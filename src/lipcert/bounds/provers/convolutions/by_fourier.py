"""The fast prover: the symbol of the convolution, frequency by frequency."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from lipcert.bounds.provers.convolutions.base import PROVERS, Prover, phases, with_padding, wraps_once
from lipcert.bounds.provers.fourier import (
    Largest,
    circular_norm_upper,
    embedded_norm_upper,
    largest_norm_upper,
)
from lipcert.bounds.provers.geometry import Geometry
from lipcert.types import Effort


@PROVERS.register("fourier")
class FourierProver(Prover):
    """The Fourier bound is fast, a little above the truth, and exact for circular convolutions."""

    looseness: ClassVar[int] = 3

    @property
    def largest(self) -> Largest:
        """Return what bounds the symbols' norms."""
        return largest_norm_upper

    def is_affordable(self, weight: Tensor, g: Geometry, effort: Effort) -> bool:
        """Return True."""
        return True

    def upper(self, weight: Tensor, g: Geometry) -> float:
        """Return the largest norm of a group, times that of the padding where it repeats pixels."""
        if not wraps_once(g):
            return with_padding(
                max(embedded_norm_upper(part, g.cells, self.largest) for part in phases(weight, g, g.stride)),
                g,
            )
        # On the image's own grid; a stride that does not divide it is dropped, which only adds outputs.
        divides = all(n % s == 0 for n, s in zip(g.size, g.stride, strict=True))
        stride = g.stride if divides else (1, 1)
        cells = (g.size[0] // stride[0], g.size[1] // stride[1])
        return max(
            circular_norm_upper(part, cells, largest=self.largest) for part in phases(weight, g, stride)
        )
