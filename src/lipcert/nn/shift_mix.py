r"""Shifts between rotations (LipNeXt): orthogonal matrices mix channels, and pixels only move.

Hu et al. LipNeXt. arXiv 2601.18513, 2026. There is no public code; docs/layers.md says how we fill the gaps
of its description.

$$ y = M R^T\, \mathrm{shift}\big(R(x + p)\big) + b $$

R and M are orthogonal, p is a term of the position (a row's and a column's, for every channel). `shift` moves
a fifth of the channels each up, down, left and right around the circle, and leaves a fifth in place. The
matrices are parameters that the optimiser keeps orthogonal (train/optimizers/orthogonal.py); in evaluation
the orthogonal matrices nearest to them are executed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds import Proof, rule
from lipcert.bounds.contract import Channelwise, sample_norm
from lipcert.bounds.provers.factorisation import nu
from lipcert.bounds.provers.rounding import SAFETY, gamma, mul_up
from lipcert.bounds.rules.linear import dense_upper
from lipcert.errors import InputError
from lipcert.nn.bases.derived import Built, Derived
from lipcert.types import Effort, Shape

# Rows and columns by which each of five groups of channels moves.
_MOVES = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))


class OrthogonalParameter(nn.Parameter):
    """A square matrix that optimisers rotate, so that it stays orthogonal."""


def shift(x: Tensor) -> Tensor:
    """Keep one fifth of the channels and move the others up, down, left and right around the circle.

    Example:
        >>> shift(torch.arange(5.0).view(1, 5, 1, 1).expand(1, 5, 1, 2)).shape
        torch.Size([1, 5, 1, 2])
    """
    parts = x.tensor_split(len(_MOVES), dim=1)
    return torch.cat([p.roll(move, dims=(-2, -1)) for p, move in zip(parts, _MOVES, strict=True)], dim=1)


class ShiftMix(Derived):
    """Move pixels around the circle, between orthogonal matrices that the optimiser turns; for one `size`."""

    sources = ("rotation", "mix")

    def __init__(self, channels: int, size: Sequence[int], bias: bool = True) -> None:
        super().__init__()
        if channels < 1 or len(size) != 2 or min(size) < 1:
            raise InputError(f"channels, size: expected numbers >= 1, got {channels} and {tuple(size)}")
        self.channels, self.size = channels, tuple(size)
        self.rotation = OrthogonalParameter(nn.init.orthogonal_(torch.empty(channels, channels)))
        self.mix = OrthogonalParameter(nn.init.orthogonal_(torch.empty(channels, channels)))
        self.down = nn.Parameter(torch.zeros(channels, size[0], 1))
        self.right = nn.Parameter(torch.zeros(channels, 1, size[1]))
        self.bias = nn.Parameter(torch.zeros(channels)) if bias else None

    def _mark(self) -> None:
        """Turn matrices that something replaced into orthogonal parameters again."""
        for name in self.sources:
            matrix = getattr(self, name)
            if not isinstance(matrix, OrthogonalParameter):
                setattr(self, name, OrthogonalParameter(matrix.detach(), matrix.requires_grad))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the parameter type: pickle keeps plain parameters only."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._mark()

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._mark()

    def _apply(self, *args: Any, **kwargs: Any) -> Self:
        super()._apply(*args, **kwargs)  # type: ignore[no-untyped-call]
        self._mark()
        return self

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return R and MRᵀ."""
        rotation, mix = sources if self.training else (nearest_orthogonal(source) for source in sources)
        return rotation, mix @ rotation.T

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer; the shape stays."""
        if x.ndim != 4 or tuple(x.shape[1:]) != (self.channels, *self.size):
            raise InputError(
                f"ShiftMix: expected a batch of images of {(self.channels, *self.size)}, got {tuple(x.shape)}"
            )
        first, second = self.weights()
        return _mixed(shift(_mixed(x + (self.down + self.right), first, None)), second, self.bias)

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return f"{self.channels}, size={self.size}, bias={self.bias is not None}"


def _mixed(x: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
    return F.conv2d(x, matrix[:, :, None, None], bias)


def nearest_orthogonal(matrix: Tensor) -> Tensor:
    """Return the polar factor, and NaN where the matrix is not finite.

    Example:
        >>> nearest_orthogonal(torch.tensor([[0.0, 2.0], [-3.0, 0.0]]))
        tensor([[ 0.,  1.],
                [-1.,  0.]])
    """
    if matrix.is_meta:
        return matrix
    if not torch.isfinite(matrix).all():
        return torch.full_like(matrix, torch.nan)
    left, _, right = torch.linalg.svd(matrix)
    found: Tensor = left @ right
    return found


@rule(
    ShiftMix,
    examples=[
        lambda: (ShiftMix(6, (4, 3)), (6, 4, 3)),
        lambda: (ShiftMix(5, (1, 2), bias=False), (5, 1, 2)),
        lambda: (ShiftMix(3, (2, 2)), (3, 2, 2)),
    ],
)
class ShiftMixRule(Built):
    """The constant is at most ‖R‖·‖MRᵀ‖ of the executed matrices."""

    def upper(self, module: ShiftMix, shape: Shape, effort: Effort) -> Proof:
        """Prove the constant: 1, up to rounding error."""
        first, second = (dense_upper(weight) for weight in module.weights())
        return Proof(mul_up(first.value, second.value), first.prover)

    def roundoff(self, module: ShiftMix, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the error by γ‖|MRᵀ| shift(|R|(|x| + |p|)) + |b|‖."""
        (x,) = inputs
        first, second = module.weights()
        size = x.abs() + module.down.abs() + module.right.abs()
        bias = None if module.bias is None else module.bias.abs()
        size = _mixed(shift(_mixed(size, first.abs(), None)), second.abs(), bias)
        return SAFETY * gamma(self.products(module)) * sample_norm(size)

    def roundoff_gain(self, module: ShiftMix) -> float:
        """Return the gain of |MRᵀ||R|."""
        first, second = module.weights()
        return SAFETY * SAFETY * (self.products(module) + 1) * math.sqrt(nu(first) * nu(second))

    def products(self, module: ShiftMix) -> int:
        """Count the products of both matrices, and the sums before them."""
        return 2 * module.channels + 12


class PartialAbs(nn.Module):
    """Take |x| on the first `share` of the channels, an isometry at every point; the others stay.

    Example:
        >>> PartialAbs(0.5)(torch.tensor([[-1.0, -2.0]]))
        tensor([[ 1., -2.]])
    """

    def __init__(self, share: float = 0.75) -> None:
        super().__init__()
        if not 0 <= share <= 1:
            raise InputError(f"share: expected a number between 0 and 1, got {share}")
        self.share = share

    def forward(self, x: Tensor) -> Tensor:
        """Fold the first channels; the shape stays."""
        folded = round(self.share * x.shape[1])
        return torch.cat([x[:, :folded].abs(), x[:, folded:]], dim=1)

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return str(self.share)


@rule(
    PartialAbs,
    examples=[
        lambda: (PartialAbs(), (6,)),
        lambda: (PartialAbs(0.5), (4, 3, 3)),
        lambda: (PartialAbs(0.0), (2,)),
    ],
)
class PartialAbsRule(Channelwise):
    """The constant is 1."""
