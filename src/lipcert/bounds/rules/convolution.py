"""Convolutions and transposed convolutions: the norm of the operator on the actual input size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds.contract import Proof, rule
from lipcert.bounds.krylov import LinearMap
from lipcert.bounds.provers.convolution_norm import convolution_upper
from lipcert.bounds.provers.geometry import Geometry, Setting, per_axis
from lipcert.bounds.rules.linear import dot_gain, dot_roundoff
from lipcert.types import Effort, Shape

Conv = nn.Conv1d | nn.Conv2d


@rule(
    nn.Conv1d,
    nn.Conv2d,
    examples=[
        lambda: (nn.Conv1d(3, 4, 3, padding=1), (3, 7)),
        lambda: (nn.Conv1d(2, 4, 4, stride=3, padding=2, dilation=2, groups=2, bias=False), (2, 11)),
        lambda: (nn.Conv1d(2, 3, 3, padding=2, padding_mode="reflect"), (2, 6)),
        lambda: (nn.Conv2d(3, 4, 3, padding=1), (3, 6, 6)),
        lambda: (nn.Conv2d(2, 6, 4, stride=2, padding=1), (2, 8, 7)),
        lambda: (nn.Conv2d(2, 2, 3, stride=2, padding=1), (2, 6, 6)),
        lambda: (nn.Conv2d(4, 6, (3, 2), stride=(1, 3), dilation=(2, 1), groups=2), (4, 7, 9)),
        lambda: (nn.Conv2d(2, 3, 4, padding="same", bias=False), (2, 5, 5)),
        lambda: (nn.Conv2d(2, 3, 5, padding=2), (2, 1, 1)),
        lambda: (nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), (2, 5, 5)),
        lambda: (nn.Conv2d(2, 3, 3, padding=1, stride=2, padding_mode="reflect"), (2, 4, 4)),
        lambda: (nn.Conv2d(2, 3, 3, padding=2, padding_mode="replicate"), (2, 4, 5)),
    ],
)
class ConvRule(LinearMap[Conv]):
    """The constant is the norm on the actual input size, with stride, padding, dilation and groups."""

    def apply(self, module: Conv, v: Tensor) -> Tensor:
        """Return W v."""
        image: Tensor = module._conv_forward(v, module.weight, None)
        return image

    def adjoint(self, module: Conv, u: Tensor, shape: torch.Size) -> Tensor:
        """Return Wᵀ u, of exactly the input's size."""
        back = Geometry.of(module, shape).transpose(_as_images(module, u), _as_images(module, module.weight))
        return back.reshape(u.shape[0], *shape)

    def upper(self, module: Conv, shape: Shape, effort: Effort) -> Proof:
        """Prove the norm by Gram matrix or Fourier symbol."""
        return convolution_upper(_as_images(module, module.weight), Geometry.of(module, shape), effort)

    def roundoff(self, module: Conv, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the error as for a dense layer, with c_in·k² products per output."""
        (x,) = inputs
        bias = None if module.bias is None else module.bias.abs()
        absolute = module._conv_forward(x.abs(), module.weight.abs(), bias)
        return dot_roundoff(absolute, self.products(module))

    def roundoff_gain(self, module: Conv) -> float:
        """Return the gain from ‖|A|‖_∞‖|A|‖₁; a pixel that the padding repeats counts once per copy."""
        copies = 1 if module.padding_mode == "zeros" else math.prod(most_copies(module))
        return dot_gain(copies * row_times_column(module.weight, module.groups), self.products(module))

    def products(self, module: Conv) -> int:
        """Return c_in·k²."""
        return module.weight[0].numel()

    def output_shape(self, module: Conv, shape: Shape) -> Shape:
        """Return the size that follows from the geometry."""
        size = Geometry.of(module, shape).output
        return module.weight.shape[0], *(size[1:] if isinstance(module, nn.Conv1d) else size)


def row_times_column(weight: Tensor, groups: int) -> float:
    """Return ‖|A|‖_∞‖|A|‖₁ ≥ ‖|A|‖₂² of a convolution, the largest over its groups and any image size."""
    size = weight.detach().double().abs()
    rows = size.flatten(1).sum(1).max()
    columns = max(part.transpose(0, 1).flatten(1).sum(1).max() for part in size.chunk(groups))
    return float(rows * columns)


def most_copies(module: Conv) -> list[int]:
    """Return, for each axis, in how many places padding can put one pixel of any image."""
    edges = list(module._reversed_padding_repeated_twice)
    return [1 + edges[i] + edges[i + 1] for i in range(0, len(edges), 2)]


def _as_images(module: nn.Module, x: Tensor) -> Tensor:
    """Return (…, L) as (…, 1, L) for one-dimensional layers."""
    return x.unsqueeze(-2) if isinstance(module, nn.Conv1d) else x


@rule(
    nn.ConvTranspose2d,
    examples=[
        lambda: (nn.ConvTranspose2d(3, 4, 3, padding=1), (3, 5, 5)),
        lambda: (nn.ConvTranspose2d(4, 6, 4, stride=2, padding=1, groups=2), (4, 4, 3)),
        lambda: (nn.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1, dilation=(1, 2)), (2, 4, 4)),
    ],
)
class ConvTranspose2dRule(LinearMap[nn.ConvTranspose2d]):
    """The constant is the norm of the convolution whose adjoint the layer is."""

    def apply(self, module: nn.ConvTranspose2d, v: Tensor) -> Tensor:
        """Return W v."""
        return _transposed(module, v, module.weight, None)

    def adjoint(self, module: nn.ConvTranspose2d, u: Tensor, shape: torch.Size) -> Tensor:
        """Return Wᵀ u, the plain convolution, without outputs that only come from `output_padding`."""
        g = _geometry_behind(module, tuple(u.shape[-2:]))
        return g.convolve(u, module.weight)[..., : shape[-2], : shape[-1]]

    def upper(self, module: nn.ConvTranspose2d, shape: Shape, effort: Effort) -> Proof:
        """Prove the norm of the convolution whose adjoint the layer is."""
        geometry = _geometry_behind(module, _output_size(module, shape))
        return convolution_upper(module.weight, geometry, effort)

    def roundoff(self, module: nn.ConvTranspose2d, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the error of at most c_in·k² products per output."""
        (x,) = inputs
        bias = None if module.bias is None else module.bias.abs()
        return dot_roundoff(_transposed(module, x.abs(), module.weight.abs(), bias), self.products(module))

    def roundoff_gain(self, module: nn.ConvTranspose2d) -> float:
        """Return the gain of the adjoint convolution."""
        return dot_gain(row_times_column(module.weight, module.groups), self.products(module))

    def products(self, module: nn.ConvTranspose2d) -> int:
        """Return c_in·k²."""
        return module.weight.shape[0] // module.groups * module.weight[0, 0].numel()

    def output_shape(self, module: nn.ConvTranspose2d, shape: Shape) -> Shape:
        """Return the size that follows from the settings."""
        return module.weight.shape[1] * module.groups, *_output_size(module, shape)


def _transposed(module: nn.ConvTranspose2d, v: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return F.conv_transpose2d(
        v,
        weight,
        bias,
        stride=module.stride,
        padding=cast(tuple[int, int], module.padding),
        output_padding=module.output_padding,
        groups=module.groups,
        dilation=module.dilation,
    )


def _output_size(module: nn.ConvTranspose2d, shape: Shape) -> tuple[int, int]:
    settings = (module.stride, module.padding, module.output_padding, module.dilation)
    axes = zip(
        shape[-2:], module.weight.shape[2:], *(per_axis(cast(Setting, s), 2) for s in settings), strict=True
    )
    down, right = ((n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, k, s, p, o, d in axes)
    return down, right


def _geometry_behind(module: nn.ConvTranspose2d, size: tuple[int, ...]) -> Geometry:
    """Return the geometry of the adjoint convolution, on the output of the transposed one."""
    stride, (down, right), dilation = (
        cast(tuple[int, int], per_axis(cast(Setting, s), 2))
        for s in (module.stride, module.padding, module.dilation)
    )
    return Geometry(
        size=(size[0], size[1]),
        kernel=(module.weight.shape[2], module.weight.shape[3]),
        stride=stride,
        padding=((down, down), (right, right)),
        dilation=dilation,
        groups=module.groups,
        mode="zeros",
    )
