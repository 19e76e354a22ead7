r"""BRO: block reflectors, orthogonal matrices that mirror a learned subspace, at every frequency of an image.

Lai, Luo, Hsu. Enhancing Certified Robustness via Block Reflector Orthogonal Layers and Logit Annealing Loss.
ICML 2025.

$$ W = I - 2V(V^H V + \epsilon I)^{-1}V^H, \qquad V \in \mathbb{C}^{c \times n},\ n < c $$

ε is 1e-7 of the mean diagonal of VᴴV. Rows and columns beyond the layer's channels are cut off. A zero-padded
convolution is computed on a circle that is larger by the kernel's reach, and its output is cut out again.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.errors import InputError
from lipcert.nn.bases.derived import Built
from lipcert.nn.bases.linear import DerivedLinear, DerivedLinearRule
from lipcert.nn.bases.spectral import SpectralConv2d, SpectralRule

_EPSILON = 1e-7


def block_reflector(v: Tensor) -> Tensor:
    """Return I − 2V(VᴴV + εI)⁻¹Vᴴ for (…, c, n), real or complex; V = 0 gives I.

    Example:
        >>> block_reflector(torch.tensor([[3.0], [0.0]]))
        tensor([[-1.0000,  0.0000],
                [ 0.0000,  1.0000]])
    """
    c, n = v.shape[-2:]
    eye = torch.eye(c, dtype=v.dtype, device=v.device)
    gram = v.mH @ v
    diagonal = gram.diagonal(dim1=-2, dim2=-1).real.mean(-1)[..., None, None]
    ridge = torch.where(diagonal > 0, _EPSILON * diagonal, 1.0)
    solved: Tensor = torch.linalg.solve_ex(gram + ridge * eye[:n, :n], v.mH).result
    return eye - 2 * v @ solved


def rank_of(channels: int, rank: float) -> int:
    """Return how many dimensions are mirrored: a fraction of the channels, at least 1 and not all."""
    if not 0 < rank < 1:
        raise InputError(f"rank: expected a fraction between 0 and 1, got {rank}")
    if channels < 2:
        raise InputError("BRO: expected at least 2 channels, because one channel cannot be mirrored in part")
    return max(1, min(channels - 1, round(rank * channels)))


class BROLinear(DerivedLinear):
    """Reflect a learned subspace of `rank` times the dimensions: orthogonal unless channels are cut off."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, rank: float = 0.5) -> None:
        self.rank = rank
        super().__init__(in_features, out_features, bias)

    def first(self) -> Tensor:
        """Return normally distributed weights."""
        side = max(self.in_features, self.out_features)
        return nn.init.xavier_normal_(torch.empty(side, rank_of(side, self.rank)))

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W."""
        return (block_reflector(sources[0])[: self.out_features, : self.in_features],)


class BROConv2d(SpectralConv2d):
    """Reflect a learned subspace at every frequency: orthogonal on a circle larger than the padded image.

    A stride is taken by space-to-depth; the kernel keeps its side. What the layer cuts out is no longer
    orthogonal at the border, or where channels are cut off.
    """

    halves_kernel = False
    pads = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int] = 3,
        stride: int = 1,
        bias: bool = True,
        rank: float = 0.5,
    ) -> None:
        self.rank = rank
        super().__init__(in_channels, out_channels, kernel_size, stride, bias)

    def first(self, inputs: int, kernel: int) -> Tensor:
        """Return normally distributed kernels."""
        side = max(self.out_channels, inputs)
        return nn.init.xavier_normal_(torch.empty(side, rank_of(side, self.rank), kernel, kernel))

    def symbols(self, spectrum: Tensor) -> Tensor:
        """Return block reflectors, cut to the layer's channels."""
        return block_reflector(spectrum)[:, : self.out_channels, : self.inner]


@rule(
    BROLinear,
    examples=[
        lambda: (BROLinear(6, 4), (6,)),
        lambda: (BROLinear(3, 8, bias=False), (3,)),
        lambda: (BROLinear(2, 2, rank=0.9), (2,)),
    ],
)
class BROLinearRule(Built, DerivedLinearRule):
    """The constant is 1, up to rounding error."""


@rule(
    BROConv2d,
    examples=[
        lambda: (BROConv2d(4, 4), (4, 6, 5)),
        lambda: (BROConv2d(2, 6, bias=False), (2, 3, 3)),
        lambda: (BROConv2d(3, 2, kernel_size=5), (3, 5, 6)),
        lambda: (BROConv2d(2, 3, stride=2, rank=0.25), (2, 6, 4)),
        lambda: (BROConv2d(5, 4, kernel_size=1), (5, 1, 1)),
    ],
)
class BROConvRule(SpectralRule):
    """The constant is 1, up to rounding error."""
