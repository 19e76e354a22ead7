"""Convolutions and averages as products and sums of slices, in any precision and every runtime.

ONNX runtimes have convolutions for float32 only, and may compute them by Winograd or Fourier transforms,
whose rounding errors no certificate here covers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx

from lipcert.types import Shape


@dataclass(frozen=True)
class Convolution:
    """The equivalent of aten.convolution in one or two dimensions, for an input and kernels of known shapes.

    `table` keeps a list of places as a tensor; when traced, it is part of the program.
    """

    shape: Shape  # one input's
    kernels: Shape
    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]
    transposed: bool
    output_padding: Sequence[int]
    groups: int
    table: Callable[[tuple[int, ...]], Tensor] = torch.tensor

    def __call__(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve (B, C, H, W) → (B, C', H', W')."""
        if len(self.shape) == 2:
            return self._along_a_row()(x.unsqueeze(2), weight.unsqueeze(2), bias).squeeze(2)
        if self.transposed:
            return self._untransposed(x, weight, bias)
        down, right = self.padding
        return self._patches(x, weight, bias, (right, right, down, down))

    def _along_a_row(self) -> Convolution:
        return replace(
            self,
            shape=(self.shape[0], 1, self.shape[1]),
            kernels=(*self.kernels[:2], 1, self.kernels[2]),
            stride=(1, *self.stride),
            padding=(0, *self.padding),
            dilation=(1, *self.dilation),
            output_padding=(0, *self.output_padding),
        )

    def _patches(self, x: Tensor, weight: Tensor, bias: Tensor | None, around: tuple[int, ...]) -> Tensor:
        """Multiply matrices, once per group, with columns from one look-up."""
        outputs, _, *kernel = self.kernels
        height = self.shape[1] + around[2] + around[3]
        width = self.shape[2] + around[0] + around[1]
        size = [
            (n - d * (k - 1) - 1) // s + 1
            for n, k, s, d in zip((height, width), kernel, self.stride, self.dilation, strict=True)
        ]
        places = self.table(_places(kernel, self.stride, self.dilation, size, width))
        x = F.pad(x, list(around)) if any(around) else x
        # Slicing and concatenating takes a runtime several times as long.
        columns = torch.index_select(x.flatten(2), 2, places)  # (B, C, k·k·H'·W')
        columns = columns.reshape(
            -1, self.groups, self.shape[0] // self.groups * math.prod(kernel), math.prod(size)
        )
        rows = weight.reshape(self.groups, outputs // self.groups, -1)
        y = torch.matmul(rows, columns).reshape(-1, outputs, *size)
        return y if bias is None else y + bias.reshape(-1, 1, 1)

    def _untransposed(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve with stride 1, zeros between the pixels and flipped kernels."""
        channels, height, width = self.shape
        inputs, outputs, *kernel = self.kernels
        down, right = self.stride
        x = F.pad(x.reshape(-1, channels, height, 1, width, 1), (0, right - 1, 0, 0, 0, down - 1))
        x = x.reshape(-1, channels, height * down, width * right)
        grouped = weight.reshape(self.groups, inputs // self.groups, outputs, *kernel)
        turned = grouped.transpose(1, 2).flatten(0, 1).flip(2, 3)
        around: list[int] = []
        for axis in (1, 0):
            before = self.dilation[axis] * (kernel[axis] - 1) - self.padding[axis]
            around += [before, before + self.output_padding[axis] - (self.stride[axis] - 1)]
        plain = replace(
            self,
            shape=(channels, height * down, width * right),
            kernels=(self.groups * outputs, inputs // self.groups, *kernel),
            stride=(1, 1),
            transposed=False,
        )
        return plain._patches(x, turned, bias, tuple(around))


def _places(
    kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], size: Sequence[int], width: int
) -> tuple[int, ...]:
    """Return the pixel of each kernel entry for each output: k·k·H'·W' places in an image."""
    down, right = (
        [[d * i + s * j for j in range(n)] for i in range(k)]
        for k, s, d, n in zip(kernel, stride, dilation, size, strict=True)
    )
    return tuple(width * y + x for i in down for j in right for y in i for x in j)


def with_patches(module: fx.GraphModule) -> None:
    """Replace every convolution of a program; equal geometries share their places."""
    tables: dict[tuple[int, ...], str] = {}
    tracer = fx.proxy.GraphAppendingTracer(module.graph)

    def table(places: tuple[int, ...]) -> Any:
        if places not in tables:
            tables[places] = f"places{len(tables)}"
            module.register_buffer(tables[places], torch.tensor(places))
        return fx.Proxy(module.graph.get_attr(tables[places]), tracer)

    for node in list(module.graph.nodes):
        if node.target == torch.ops.aten.convolution.default:
            tensors, numbers = node.args[:3], node.args[3:]
            shape, kernels = (tuple(argument.meta["val"].shape) for argument in tensors[:2])
            with module.graph.inserting_before(node):
                proxies = [
                    argument if argument is None else fx.Proxy(argument, tracer) for argument in tensors
                ]
                convolution = replace(Convolution(shape[1:], kernels, *numbers), table=table)
                made: Any = convolution(*proxies)  # type: ignore[arg-type]
            node.replace_all_uses_with(made.node)
            module.graph.erase_node(node)
    module.graph.lint()
    module.recompile()


def _every(x: Tensor, dim: int, start: int, step: int, count: int) -> Tensor:
    """Return `count` places from `start`, every step-th."""
    return torch.ops.aten.slice.Tensor(x, dim, start, start + step * (count - 1) + 1, step)  # type: ignore[no-any-return]


def average_pool(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Pool like aten.avg_pool2d."""
    counts: list[list[int]] = []
    for axis in (0, 1):
        k, p = kernel[axis % len(kernel)], padding[axis % len(padding)]
        s = stride[axis % len(stride)] if stride else k
        length = x.shape[2 + axis]
        count = _windows(length, k, s, p, ceil_mode)
        starts = [i * s - p for i in range(count)]
        first, last = (-p, length + p) if count_include_pad else (0, length)
        counts.append([min(start + k, last) - max(start, first) for start in starts])
        after = max(starts[-1] + k - length, p)
        x = F.pad(x, (0, 0, p, after) if axis == 0 else (p, after, 0, 0))
        places = [_every(x, 2 + axis, i, s, count) for i in range(k)]
        x = torch.stack(places, dim=0).sum(dim=0)
    if divisor_override:
        return x / divisor_override
    rows, columns = (torch.cat([torch.full((1,), n) for n in counts[axis]]).to(x) for axis in (0, 1))
    return x / (rows[:, None] * columns)


def _windows(length: int, kernel: int, stride: int, padding: int, ceil_mode: bool) -> int:
    """Return the number of windows along an axis; none starts in the padding behind."""
    room = length + 2 * padding - kernel
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    return count - 1 if ceil_mode and (count - 1) * stride >= length + padding else count


def adaptive_average_pool(x: Tensor, output: Sequence[int]) -> Tensor:
    """Pool like aten._adaptive_avg_pool2d: equal windows as above, uneven ones as torch decomposes them."""
    sides = [int(n) for n in x.shape[-2:]]
    if all(n % o == 0 for n, o in zip(sides, output, strict=True)):
        return average_pool(x, [n // o for n, o in zip(sides, output, strict=True)])
    uneven: Tensor = torch._decomp.decompositions.adaptive_avg_pool2d(x, tuple(output))
    return uneven


# Used by torch.export.
DECOMPOSITIONS = {
    torch.ops.aten.avg_pool2d.default: average_pool,
    torch.ops.aten._adaptive_avg_pool2d.default: adaptive_average_pool,
}
