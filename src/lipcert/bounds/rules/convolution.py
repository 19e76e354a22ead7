"""Convolutions and transposed convolutions: the norm of the operator on the real input size.

Two provers: exact (Gram matrix and Cholesky) and fast (Fourier); effort and size choose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds.cholesky import scale_to_one
from lipcert.bounds.contract import Proof, rule
from lipcert.bounds.fourier import circular_norm_upper, dilated, embedded_norm_upper, polyphase
from lipcert.bounds.gram import EXACT_SIDE, Operator, operator_norm_upper
from lipcert.bounds.power_iteration import LinearMap
from lipcert.bounds.rounding import ldexp_up, mul_up, sqrt_up
from lipcert.bounds.rules.linear import dot_gain, dot_roundoff
from lipcert.types import Shape

# Side of the Gram matrix up to which the exact prover is used without being asked for.
_AUTO_SIDE = 2048


@dataclass(frozen=True)
class Geometry:
    """A convolution without its weights; padding is (left, right) a dimension."""

    size: tuple[int, int]  # of the input
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[tuple[int, int], tuple[int, int]]
    dilation: tuple[int, int]
    groups: int
    mode: str

    @classmethod
    def of(cls, module: nn.Conv1d | nn.Conv2d, shape: Shape) -> Geometry:
        """Of a module on an input (C, H, W) or (C, L); one dimension becomes two."""
        flat = isinstance(module, nn.Conv1d)

        def pair(values: Sequence[int], missing: int) -> tuple[int, int]:
            return (missing, values[0]) if flat else (values[0], values[1])

        kernel, dilation = pair(module.kernel_size, 1), pair(module.dilation, 1)
        if module.padding == "same":
            total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
            padding = [(t // 2, t - t // 2) for t in total]
        elif module.padding == "valid":
            padding = [(0, 0), (0, 0)]
        else:
            padding = [(p, p) for p in pair(cast(Sequence[int], module.padding), 0)]
        return cls(
            size=pair(shape[1:], 1),
            kernel=kernel,
            stride=pair(module.stride, 1),
            padding=(padding[0], padding[1]),
            dilation=dilation,
            groups=module.groups,
            mode=module.padding_mode,
        )

    @property
    def reach(self) -> tuple[int, int]:
        """Of the dilated kernel."""
        down, right = (d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))
        return down, right

    @property
    def padded(self) -> tuple[int, int]:
        """The size after padding."""
        down, right = (n + a + b for n, (a, b) in zip(self.size, self.padding, strict=True))
        return down, right

    @property
    def output(self) -> tuple[int, int]:
        """The size after the convolution."""
        down, right = ((n - r) // s + 1 for n, r, s in zip(self.padded, self.reach, self.stride, strict=True))
        return down, right

    @property
    def copies(self) -> int:
        """How many places of the padded image one pixel can be found in."""
        if self.mode == "zeros":
            return 1
        return math.prod(self._axis_copies(axis) for axis in (0, 1))

    def _axis_copies(self, axis: int) -> int:
        n = self.size[axis]
        places = torch.arange(n, dtype=torch.float64).view(1, 1, 1, n)
        padded = F.pad(places, (*self.padding[axis], 0, 0), mode=self.mode).flatten().long()
        return int(padded.bincount().max())

    def pad(self, x: Tensor) -> Tensor:
        """The padded image."""
        edges = (*self.padding[1], *self.padding[0])
        if not any(edges):
            return x
        return F.pad(x, edges) if self.mode == "zeros" else F.pad(x, edges, mode=self.mode)

    def unpad(self, x: Tensor) -> Tensor:
        """The adjoint of `pad`: copies are added up."""
        (up, _), (left, _) = self.padding
        if self.mode == "zeros":
            return x[..., up : up + self.size[0], left : left + self.size[1]]
        origin = x.new_zeros(*x.shape[:-2], *self.size)
        added: Tensor = torch.func.vjp(self.pad, origin)[1](x)[0]
        return added

    def convolve(self, x: Tensor, weight: Tensor) -> Tensor:
        """W x."""
        return F.conv2d(self.pad(x), weight, stride=self.stride, dilation=self.dilation, groups=self.groups)

    def transpose(self, y: Tensor, weight: Tensor) -> Tensor:
        """Wᵀ y, of exactly the input's size: rows the stride skips at the far edge are put back."""
        skipped = [(n - r) % s for n, r, s in zip(self.padded, self.reach, self.stride, strict=True)]
        whole = F.conv_transpose2d(
            y,
            weight,
            stride=self.stride,
            dilation=self.dilation,
            groups=self.groups,
            output_padding=(skipped[0], skipped[1]),
        )
        return self.unpad(whole)


def convolution_upper(weight: Tensor, geometry: Geometry, effort: str) -> Proof:
    """The norm of a convolution, proved; weight (c_out, c_in/groups, k₁, k₂)."""
    scaled, exponent = scale_to_one(weight.detach().to("cpu", torch.float64))
    if scaled is None:
        return Proof(0.0, "known")
    operator = _operator(scaled, geometry)
    limit = {"auto": _AUTO_SIDE, "exact": EXACT_SIDE, "fast": 0}[effort]
    if operator.side <= limit:
        return Proof(ldexp_up(operator_norm_upper(operator), exponent), "gram")
    return Proof(ldexp_up(_fourier(scaled, geometry), exponent), "fourier")


def _operator(weight: Tensor, g: Geometry) -> Operator:
    outputs, inputs, *kernel = weight.shape
    absolute = weight.abs()
    # One pixel in several places: its coefficient, and what flows back to it, are sums of as many terms.
    terms = max(inputs, outputs // g.groups) * math.prod(kernel) * g.copies + 2 * g.copies
    return Operator(
        input_shape=(inputs * g.groups, *g.size),
        output_shape=(outputs, *g.output),
        apply=lambda x: g.convolve(x, weight),
        adjoint=lambda y: g.transpose(y, weight),
        absolute_apply=lambda x: g.convolve(x, absolute),
        absolute_adjoint=lambda y: g.transpose(y, absolute),
        terms=terms,
    )


def _fourier(weight: Tensor, g: Geometry) -> float:
    """The largest group's norm, times that of the padding where it repeats pixels."""
    whole = dilated(weight, g.dilation)
    stride = g.stride
    bound = embedded_norm_upper
    if g.mode == "circular" and _wraps_once(g):
        # On the image's own grid; a stride that does not divide it is dropped, which only adds outputs.
        grid, factor, bound = g.size, 1.0, circular_norm_upper
        if any(n % s for n, s in zip(g.size, stride, strict=True)):
            stride = (1, 1)
    else:
        # Embedded in the padded image, cut to what the outputs see.
        grid = cast(
            tuple[int, int],
            tuple(s * (o - 1) + r for s, o, r in zip(stride, g.output, g.reach, strict=True)),
        )
        factor = sqrt_up(float(g.copies)) if g.copies > 1 else 1.0
    phases = polyphase(whole, stride)
    cells = cast(tuple[int, int], tuple(-(-n // s) for n, s in zip(grid, stride, strict=True)))
    norms = [bound(part, cells) for part in phases.chunk(g.groups)]
    return mul_up(max(norms), factor) if factor != 1 else max(norms)


def _wraps_once(g: Geometry) -> bool:
    """Whether no output of a circular convolution is made twice."""
    return all(
        (n - r) // s + 1 <= -(-m // s) for n, r, s, m in zip(g.padded, g.reach, g.stride, g.size, strict=True)
    )


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
    """Cross-correlation on the real input size, with its stride, padding, dilation and groups."""

    def apply(self, module: Conv, v: Tensor) -> Tensor:
        """W v."""
        image: Tensor = module._conv_forward(v, module.weight, None)
        return image

    def adjoint(self, module: Conv, u: Tensor, shape: torch.Size) -> Tensor:
        """Wᵀ u, of exactly the input's size."""
        back = Geometry.of(module, shape).transpose(_as_images(module, u), _as_images(module, module.weight))
        return back.reshape(u.shape[0], *shape)

    def upper(self, module: Conv, shape: Shape, effort: str) -> Proof:
        """By Gram matrix or Fourier symbol."""
        return convolution_upper(_as_images(module, module.weight), Geometry.of(module, shape), effort)

    def roundoff(self, module: Conv, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """As for a dense layer, with c_in·k² products an output."""
        (x,) = inputs
        bias = None if module.bias is None else module.bias.abs()
        absolute = module._conv_forward(x.abs(), module.weight.abs(), bias)
        return dot_roundoff(absolute, self.products(module))

    def roundoff_gain(self, module: Conv) -> float:
        """From ‖|A|‖_∞‖|A|‖₁; a pixel repeated by the padding counts as often."""
        copies = 1 if module.padding_mode == "zeros" else math.prod(_most_copies(module))
        return dot_gain(copies * _row_times_column(module.weight, module.groups), self.products(module))

    def products(self, module: Conv) -> int:
        """c_in·k²."""
        return module.weight[0].numel()


def _row_times_column(weight: Tensor, groups: int) -> float:
    """‖|A|‖_∞‖|A|‖₁ ≥ ‖|A|‖₂² of a convolution, the largest over its groups and any image size."""
    size = weight.detach().double().abs()
    rows = size.flatten(1).sum(1).max()
    columns = max(part.transpose(0, 1).flatten(1).sum(1).max() for part in size.chunk(groups))
    return float(rows * columns)


def _most_copies(module: Conv) -> list[int]:
    """Places an axis of padding can put one pixel in, whatever the image: itself and every padded row."""
    return [1 + 2 * d * (k - 1) if module.padding == "same" else 1 + 2 * int(p) for k, d, p in _axes(module)]


def _axes(module: Conv) -> list[tuple[int, int, int]]:
    padding = module.padding if not isinstance(module.padding, str) else (0,) * len(module.kernel_size)
    return list(zip(module.kernel_size, module.dilation, padding, strict=True))


def _as_images(module: nn.Module, x: Tensor) -> Tensor:
    """(…, L) as (…, 1, L) for the one-dimensional layers."""
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
    """The adjoint of a convolution: the norm of that convolution."""

    def apply(self, module: nn.ConvTranspose2d, v: Tensor) -> Tensor:
        """W v."""
        return _transposed(module, v, module.weight, None)

    def adjoint(self, module: nn.ConvTranspose2d, u: Tensor, shape: torch.Size) -> Tensor:
        """Wᵀ u: the plain convolution; outputs that only `output_padding` made room for are dropped."""
        g = _geometry_behind(module, tuple(u.shape[-2:]))
        return g.convolve(u, module.weight)[..., : shape[-2], : shape[-1]]

    def upper(self, module: nn.ConvTranspose2d, shape: Shape, effort: str) -> Proof:
        """That of the convolution it is adjoint to."""
        geometry = _geometry_behind(module, _output_size(module, shape))
        return convolution_upper(module.weight, geometry, effort)

    def roundoff(self, module: nn.ConvTranspose2d, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """At most c_in·k² products an output."""
        (x,) = inputs
        bias = None if module.bias is None else module.bias.abs()
        return dot_roundoff(_transposed(module, x.abs(), module.weight.abs(), bias), self.products(module))

    def roundoff_gain(self, module: nn.ConvTranspose2d) -> float:
        """That of the convolution behind it."""
        return dot_gain(_row_times_column(module.weight, module.groups), self.products(module))

    def products(self, module: nn.ConvTranspose2d) -> int:
        """c_in·k²."""
        return module.weight.shape[0] // module.groups * module.weight[0, 0].numel()


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
    axes = zip(
        shape[-2:],
        module.kernel_size,
        module.stride,
        cast(tuple[int, int], module.padding),
        module.output_padding,
        module.dilation,
        strict=True,
    )
    down, right = ((n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, k, s, p, o, d in axes)
    return down, right


def _geometry_behind(module: nn.ConvTranspose2d, size: tuple[int, ...]) -> Geometry:
    """Of the convolution that a transposed one undoes, on the transposed one's output."""
    down, right = cast(tuple[int, int], module.padding)
    return Geometry(
        size=(size[0], size[1]),
        kernel=cast(tuple[int, int], module.kernel_size),
        stride=cast(tuple[int, int], module.stride),
        padding=((down, down), (right, right)),
        dilation=cast(tuple[int, int], module.dilation),
        groups=module.groups,
        mode="zeros",
    )
