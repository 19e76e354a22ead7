r"""Layer centering: the mean of each sample is taken away, and a bias per channel added.

The part of layer normalisation that has a constant, as deel-torchlip has it.

$$ y = x - \tfrac1n \mathbf{1}\mathbf{1}^T x + b $$

I − 11ᵀ/n is an orthogonal projection, so the constant is 1.

Also in deel-torchlip and orthogonium.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from lipcert.bounds import Constant, rule
from lipcert.bounds.contract import sample_norm
from lipcert.bounds.provers.rounding import SAFETY, gamma
from lipcert.errors import InputError
from lipcert.types import Shape


class LayerCentering(nn.Module):
    """Subtract the mean over `dims` of each sample, by default over the pixels of every channel.

    Example:
        >>> LayerCentering(1, bias=False)(torch.tensor([[[[1.0, 3.0]]]]))
        tensor([[[[-1.,  1.]]]])
    """

    def __init__(self, channels: int, dims: Sequence[int] = (-2, -1), bias: bool = True) -> None:
        super().__init__()
        if channels < 1 or not dims or 0 in dims:
            raise InputError(
                f"channels, dims: expected at least 1 and dimensions without the batch, got {channels} and "
                f"{tuple(dims)}"
            )
        self.dims = tuple(dims)
        self.bias = nn.Parameter(torch.zeros(channels)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Return the centred samples."""
        own = {dim % x.ndim for dim in self.dims if -x.ndim < dim < x.ndim} - {0}
        if len(own) < len(self.dims):
            raise InputError(
                f"LayerCentering: expected different dimensions of a sample, got {self.dims} for the shape "
                f"{tuple(x.shape)}"
            )
        y = x - x.mean(dim=self.dims, keepdim=True)
        return y if self.bias is None else y + self.bias.view(-1, *[1] * (x.ndim - 2))

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return f"dims={self.dims}, bias={self.bias is not None}"


@rule(
    LayerCentering,
    examples=[
        lambda: (LayerCentering(3), (3, 4, 2)),
        lambda: (LayerCentering(6, (1,)), (6,)),
        lambda: (LayerCentering(2, (1, 2, 3), bias=False), (2, 3, 3)),
    ],
)
class LayerCenteringRule(Constant):
    """The constant is 1: an orthogonal projection and a translation."""

    def __init__(self, shape: Shape | None = None) -> None:
        super().__init__()
        self.shape = shape

    def on(self, module: Any, shape: Shape) -> Self:
        """Return the rule for inputs of this shape."""
        return type(self)(shape)

    def roundoff(self, module: Any, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the errors of a mean, a difference and a sum."""
        (x,) = inputs
        size = x.abs() + x.abs().mean(dim=module.dims, keepdim=True)
        if module.bias is not None:
            size = size + module.bias.abs().view(-1, *[1] * (x.ndim - 2))
        return SAFETY * gamma(self.products(module) + 8) * sample_norm(size)

    def roundoff_gain(self, module: Any) -> float:
        """Return the gain: |x| and its mean grow as the input does."""
        return SAFETY * SAFETY * 2 * (self.products(module) + 9)

    def products(self, module: Any) -> int:
        """Count the entries of a mean."""
        if self.shape is None:
            raise NotImplementedError(f"{type(self).__name__} needs the shape of the inputs: rule.on(…)")
        whole = (1, *self.shape)
        return math.prod(whole[dim] for dim in module.dims)
