"""The base of derived convolutions: the arguments of nn.Conv2d, an orthogonal start, and a bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds.rules.convolution import ConvRule
from lipcert.errors import InputError
from lipcert.nn.bases.derived import Derived, filled

_BORDERS = ("zeros", "circular")


class DerivedConv2d(Derived):
    """A convolution with derived kernels; its arguments are those of nn.Conv2d, groups if it takes them."""

    sources: ClassVar[tuple[str, ...]] = ("raw",)
    takes_groups: ClassVar[bool] = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] | str = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
    ) -> None:
        super().__init__()
        kind = type(self).__name__
        if groups != 1 and not self.takes_groups:
            raise InputError(f"groups: {kind} mixes all channels; use Branches with one layer per group")
        if padding_mode not in _BORDERS:
            raise InputError(f"padding_mode: {kind} is bounded for {' and '.join(_BORDERS)} padding only")
        if min(in_channels, out_channels) < 1:
            raise InputError(f"channels: expected at least 1, got {in_channels} and {out_channels}")
        require_groups(in_channels, out_channels, groups)
        plain = nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.padding = plain.kernel_size, plain.stride, plain.padding
        self.dilation, self.padding_mode = plain.dilation, padding_mode
        self._refuse_repeated_outputs()
        self._reversed_padding_repeated_twice = plain._reversed_padding_repeated_twice
        self.raw, self.bias = nn.Parameter(self.first(plain.weight.shape)), plain.bias

    def first(self, shape: Sequence[int]) -> Tensor:
        """Return the initial raw kernels, for kernels of this shape."""
        kernels = torch.empty(*shape)
        orthogonal_centre_(kernels)
        return kernels

    def _refuse_repeated_outputs(self) -> None:
        """Refuse circular padding beyond the kernel's reach: repeated outputs cannot be 1-Lipschitz."""
        if self.padding_mode != "circular" or isinstance(self.padding, str):
            return
        axes = zip(self.padding, self.dilation, self.kernel_size, strict=True)
        if any(2 * p > d * (k - 1) for p, d, k in axes):
            raise InputError("padding: expected at most what the kernel reaches around an image, got more")

    @property
    def weight(self) -> Tensor:
        """Return the kernels that are executed."""
        return self.weights()[0]

    def forward(self, x: Tensor) -> Tensor:
        """Convolve with the derived kernels."""
        return self._conv_forward(x, self.weight, self.bias)

    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        # Padding of all kinds as in nn.Conv2d, with this layer's settings.
        try:
            out: Tensor = nn.Conv2d._conv_forward(cast(Any, self), x, weight, bias)
        except RuntimeError as error:
            if "Kernel size can't be greater" not in str(error):
                raise
            kind, size = type(self).__name__, tuple(x.shape[-2:])
            raise InputError(
                f"{kind}: the kernel {self.kernel_size} is larger than the padded image {size}: "
                "use a smaller one or more padding"
            ) from None
        return out

    def plain(self) -> nn.Module:
        """Return the equivalent nn.Conv2d."""
        layer = nn.Conv2d(
            self.in_channels,
            self.out_channels,
            self.kernel_size,  # type: ignore[arg-type]
            self.stride,  # type: ignore[arg-type]
            self.padding,  # type: ignore[arg-type]
            self.dilation,  # type: ignore[arg-type]
            self.groups,
            bias=self.bias is not None,
            padding_mode=self.padding_mode,  # type: ignore[arg-type]
        )
        return filled(layer, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}, dilation={self.dilation}, groups={self.groups}, "
            f"bias={self.bias is not None}, padding_mode={self.padding_mode}"
        )


class DerivedConvRule(ConvRule):
    """The constant is the norm of the executed convolution."""

    def products(self, module: Any) -> int:
        """Count one product more, for the rounding of the kernels themselves."""
        return super().products(module) + 1


def require_groups(in_channels: int, out_channels: int, groups: int) -> None:
    """Raise unless both numbers of channels are divisible by the groups."""
    if groups < 1 or in_channels % groups or out_channels % groups:
        raise InputError(
            f"groups: expected a divisor of {in_channels} and {out_channels} channels, got {groups}"
        )


def square_side(kernel_size: int | tuple[int, int]) -> int:
    """Return the side of a kernel that has to be square."""
    sides = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
    if len(set(sides)) != 1 or sides[0] < 1:
        raise InputError(f"kernel_size: expected one positive number for both sides, got {kernel_size}")
    return sides[0]


def space_to_depth(x: Tensor, stride: int, layer: nn.Module) -> Tensor:
    """Move the pixels of each stride × stride square to channels, a stride that loses nothing."""
    if x.shape[-1] % stride or x.shape[-2] % stride:
        expected = f"expected sides divisible by the stride {stride}, got {tuple(x.shape[-2:])}"
        raise InputError(f"{type(layer).__name__}: {expected}: pad or crop the image, or use stride 1")
    return F.pixel_unshuffle(x, stride) if stride > 1 else x


@torch.no_grad()
def orthogonal_centre_(kernels: Tensor) -> None:
    """Set kernels (out, in, k₁, k₂) to a random orthogonal matrix in their centre, and zero around it."""
    kernels.zero_()
    centre = kernels[:, :, kernels.shape[2] // 2, kernels.shape[3] // 2]
    centre.copy_(nn.init.orthogonal_(torch.empty_like(centre)))
