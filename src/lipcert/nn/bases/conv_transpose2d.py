"""The base of derived transposed convolutions: the arguments of nn.ConvTranspose2d."""

from __future__ import annotations

from typing import ClassVar, cast

import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.nn.bases.conv2d import require_groups
from lipcert.nn.bases.derived import Derived, filled

Pair = tuple[int, int]


class DerivedConvTranspose2d(Derived):
    """A transposed convolution with derived kernels (in, out/groups, k₁, k₂), padded with zeros."""

    sources: ClassVar[tuple[str, ...]] = ("raw",)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Pair,
        stride: int | Pair = 1,
        padding: int | Pair = 0,
        output_padding: int | Pair = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Pair = 1,
    ) -> None:
        super().__init__()
        require_groups(in_channels, out_channels, groups)
        plain = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias,
            cast(int, dilation),
        )  # fmt: skip
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = cast(Pair, plain.kernel_size), cast(Pair, plain.stride)
        self.padding, self.dilation = cast(Pair, plain.padding), cast(Pair, plain.dilation)
        self.output_padding = cast(Pair, plain.output_padding)
        self.raw, self.bias = nn.Parameter(self.first()), plain.bias

    def first(self) -> Tensor:
        """Return the initial raw kernels."""
        raise NotImplementedError

    @property
    def weight(self) -> Tensor:
        """Return the kernels that are executed."""
        return self.weights()[0]

    def forward(self, x: Tensor) -> Tensor:
        """Apply the adjoint of a convolution with the derived kernels, and add the bias."""
        return F.conv_transpose2d(
            x,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )

    def plain(self) -> nn.Module:
        """Return the equivalent nn.ConvTranspose2d."""
        layer = nn.ConvTranspose2d(
            self.in_channels,
            self.out_channels,
            self.kernel_size,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.bias is not None,
            cast(int, self.dilation),
        )
        return filled(layer, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}, output_padding={self.output_padding}, groups={self.groups}, "
            f"dilation={self.dilation}, bias={self.bias is not None}"
        )
