r"""AOC: adaptive orthogonal convolutions, BCOP followed by RKO in one kernel, which makes strides orthogonal.

Boissin, Mamalet, Fel, Picard, Massena, Serrurier. An Adaptive Orthogonal Convolution Scheme for Efficient and
Flexible CNN Architectures. ICML 2025.

$$ K = R_{s \times s} \,\square\, \mathrm{BCOP}_{(k-s+1) \times (k-s+1)}, \qquad k \ge s $$

R multiplies adjacent patches of side s by an orthonormal matrix. Groups are blocks, a dilation spreads the
taps, the transposed convolution is the adjoint. With circular padding the rows of the map are orthonormal if
there are at most s² times as many outputs as inputs. Otherwise its columns are, if s² divides the outputs.
With zeros around, the constant is at most 1.

Also in orthogonium.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from lipcert.bounds import rule
from lipcert.bounds.rules.convolution import ConvTranspose2dRule
from lipcert.errors import InputError
from lipcert.nn.bases.block_kernels import BlockKernels, BlockLayer, per_group
from lipcert.nn.bases.conv2d import DerivedConvRule
from lipcert.nn.bases.conv_transpose2d import DerivedConvTranspose2d
from lipcert.nn.bases.derived import Built
from lipcert.nn.bases.reshaped import require_whole_strides
from lipcert.nn.bcop import BCOPConv2d


def check_dilation(stride: Sequence[int], dilation: Sequence[int]) -> None:
    """Raise where the taps of patches overlap."""
    if any(math.gcd(s, d) > 1 for s, d in zip(stride, dilation, strict=True)):
        raise InputError(
            "stride, dilation: expected numbers without a common divisor, got "
            f"{tuple(stride)} and {tuple(dilation)}: no such convolution is orthogonal"
        )


class AOCConv2d(BCOPConv2d):
    """Compose RKO on adjacent patches and BCOP: orthogonal with a stride as well; any groups."""

    def patch(self) -> tuple[int, int]:
        """Return the stride."""
        down, right = self.stride
        check_dilation((down, right), self.dilation)
        return down, right

    def forward(self, x: Tensor) -> Tensor:
        """Convolve with the derived kernels."""
        require_whole_strides(self, x)
        return super().forward(x)


class AOCConvTranspose2d(BlockLayer, DerivedConvTranspose2d):
    """Take the adjoint of `AOCConv2d`: orthogonal if it cuts nothing; stride, groups and dilation."""

    def first(self) -> Tensor:
        """Return random orthonormal matrices."""
        return self.blocks().first_matrices()

    def blocks(self) -> BlockKernels:
        """Return how the kernels of the adjoint are made, from this layer's outputs to its inputs."""
        check_dilation(self.stride, self.dilation)
        inputs, outputs = self.out_channels // self.groups, self.in_channels // self.groups
        middle = max(inputs, per_group(self.in_channels, self.groups, self.stride))
        return BlockKernels(inputs, outputs, middle, self.groups, self.kernel_size, self.stride)


@rule(
    AOCConv2d,
    examples=[
        lambda: (AOCConv2d(2, 4, 3, stride=2, padding=1), (2, 6, 5)),
        lambda: (AOCConv2d(3, 12, 4, stride=2, padding=1, padding_mode="circular", bias=False), (3, 4, 6)),
        lambda: (AOCConv2d(4, 2, (3, 2), stride=(1, 2), dilation=(2, 1), groups=2), (4, 7, 4)),
        lambda: (AOCConv2d(3, 5, 2, stride=2), (3, 4, 4)),
        lambda: (AOCConv2d(4, 4, 3, padding=1, groups=2), (4, 2, 2)),
    ],
)
class AOCRule(Built, DerivedConvRule):
    """The constant is at most 1, up to rounding error."""


@rule(
    AOCConvTranspose2d,
    examples=[
        lambda: (AOCConvTranspose2d(4, 2, 3, stride=2, padding=1, output_padding=1), (4, 3, 3)),
        lambda: (AOCConvTranspose2d(4, 4, 3, groups=2, dilation=2, bias=False), (4, 3, 2)),
        lambda: (AOCConvTranspose2d(8, 2, 2, stride=2), (8, 3, 3)),
        lambda: (AOCConvTranspose2d(2, 3, 3, padding=1), (2, 5, 4)),
    ],
)
class AOCConvTransposeRule(Built, ConvTranspose2dRule):
    """The constant is at most 1, up to rounding error."""

    def products(self, module: Any) -> int:
        """Count one product more, for the rounding of the kernels themselves."""
        return super().products(module) + 1
