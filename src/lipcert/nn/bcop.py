r"""BCOP: block convolution orthogonal parametrisation, kernels as products of projectors.

Li, Haque, Anil, Lucas, Grosse, Jacobsen. Preventing Gradient Attenuation in Lipschitz Constrained
Convolutional Networks. NeurIPS 2019.

$$ K = Q \,\square\, [P_1, I - P_1] \,\square\, [P_2, I - P_2]^T \,\square\, \dots $$

Q is an orthogonal matrix whose rows or columns are cut to the channels, P projects on half of the dimensions;
all are made by Björck's iteration. With circular padding and stride 1 the layer is orthogonal, and so it is
with a larger stride if it has no more outputs than inputs. With zeros around, the constant is at most 1.

Also in orthogonium.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from lipcert.bounds import rule
from lipcert.nn.bases.block_kernels import BlockKernels, BlockLayer, per_group
from lipcert.nn.bases.conv2d import DerivedConv2d, DerivedConvRule
from lipcert.nn.bases.derived import Built


class BCOPConv2d(BlockLayer, DerivedConv2d):
    """Compose an orthogonal matrix and projectors: orthogonal with circular padding; any groups."""

    takes_groups = True

    def blocks(self) -> BlockKernels:
        """Return how the kernels are made."""
        inputs, outputs = self.in_channels // self.groups, self.out_channels // self.groups
        down, right = self.kernel_size
        middle = max(inputs, per_group(self.out_channels, self.groups, self.patch()))
        return BlockKernels(inputs, outputs, middle, self.groups, (down, right), self.patch())

    def patch(self) -> tuple[int, int]:
        """Return the size of the patches that the orthogonal matrix multiplies."""
        return 1, 1

    def first(self, shape: Sequence[int]) -> Tensor:
        """Return random orthonormal matrices."""
        return self.blocks().first_matrices()


@rule(
    BCOPConv2d,
    examples=[
        lambda: (BCOPConv2d(4, 4, 3, padding=1, padding_mode="circular"), (4, 6, 5)),
        lambda: (BCOPConv2d(2, 6, 3, padding=1, bias=False), (2, 3, 3)),
        lambda: (BCOPConv2d(4, 2, (2, 3), stride=2), (4, 5, 6)),
        lambda: (BCOPConv2d(4, 4, 3, padding=2, dilation=2, groups=2, order=2), (4, 5, 5)),
        lambda: (BCOPConv2d(3, 5, 1), (3, 2, 2)),
    ],
)
class BCOPRule(Built, DerivedConvRule):
    """The constant is at most 1, up to rounding error."""
