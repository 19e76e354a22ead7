r"""LOT computes the orthogonal factor of a spectrum by Newton's iteration.

Xu, Li, Li. LOT: Layer-wise Orthogonal Training on Improving l2 Certified Robustness. NeurIPS 2022.

$$ W = (V V^H + \epsilon I)^{-1/2}\, V, \qquad \epsilon = 10^{-4} $$

The inverse root comes from ten steps T = ½(3I − ZY), Y ← YT, Z ← TZ on the matrix divided by its length. W is
a contraction after any number of steps. A zero-padded convolution is computed on a circle that is larger by
the kernel's reach, and its output is cut out again. The root is taken on the smaller side of V.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.nn.bases.conv2d import orthogonal_centre_
from lipcert.nn.bases.derived import Built
from lipcert.nn.bases.linear import DerivedLinear, DerivedLinearRule
from lipcert.nn.bases.spectral import SpectralConv2d, SpectralRule

_EPSILON, _STEPS = 1e-4, 10


def orthogonal_factor(v: Tensor, steps: int = _STEPS) -> Tensor:
    """Return (VVᴴ + εI)^−½ V for matrices (…, out, in), real or complex.

    Example:
        >>> orthogonal_factor(torch.tensor([[0.0, 2.0], [3.0, 0.0]]))
        tensor([[0.0000, 1.0000],
                [1.0000, 0.0000]])
    """
    if v.shape[-2] > v.shape[-1]:
        return orthogonal_factor(v.mH, steps).mH
    n = v.shape[-2]
    eye = torch.eye(n, dtype=v.dtype, device=v.device)
    gram = v @ v.mH + _EPSILON * eye
    length = torch.linalg.matrix_norm(gram)[..., None, None] + _EPSILON
    y, z = gram / length, eye.expand_as(gram)
    for _ in range(steps):
        t = 0.5 * (3 * eye - z @ y)
        y, z = y @ t, t @ z
    factor: Tensor = z @ (v / length.sqrt())
    return factor


class LOTLinear(DerivedLinear):
    """Take the orthogonal factor of the weights by Newton's iteration."""

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W."""
        return (orthogonal_factor(sources[0]),)


class LOTConv2d(SpectralConv2d):
    """Take the orthogonal factor at every frequency, by FFT on a circle larger than the padded image.

    A stride is taken by space-to-depth; the kernel keeps its side.
    """

    halves_kernel = False
    pads = True

    def first(self, inputs: int, kernel: int) -> Tensor:
        """Return the identity for equal numbers of channels, otherwise an orthogonal centre."""
        kernels = torch.zeros(self.out_channels, inputs, kernel, kernel)
        if self.out_channels == inputs:
            return nn.init.dirac_(kernels)
        orthogonal_centre_(kernels)
        return kernels

    def symbols(self, spectrum: Tensor) -> Tensor:
        """Return almost orthogonal matrices."""
        return orthogonal_factor(spectrum)


@rule(
    LOTLinear,
    examples=[lambda: (LOTLinear(6, 4), (6,)), lambda: (LOTLinear(3, 8, bias=False), (3,))],
)
class LOTLinearRule(Built, DerivedLinearRule):
    """The constant is at most 1, up to rounding error."""


@rule(
    LOTConv2d,
    examples=[
        lambda: (LOTConv2d(4, 4), (4, 6, 5)),
        lambda: (LOTConv2d(2, 6, bias=False), (2, 3, 3)),
        lambda: (LOTConv2d(3, 2, kernel_size=5), (3, 5, 6)),
        lambda: (LOTConv2d(2, 3, stride=2), (2, 6, 4)),
        lambda: (LOTConv2d(5, 4, kernel_size=1), (5, 1, 1)),
    ],
)
class LOTConvRule(SpectralRule):
    """The constant is at most 1, up to rounding error."""
