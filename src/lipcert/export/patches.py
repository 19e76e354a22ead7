"""Convolutions and averages as products and sums of slices: in any precision, in every runtime.

ONNX runtimes have convolutions for float32 only, and may compute them by Winograd's or Fourier's
transformation, whose roundings no certificate here covers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """What aten.convolution does in one dimension or two."""
    if x.dim() == 3:
        strides, paddings, dilations = (1, *stride), (0, *padding), (1, *dilation)
        flat = (x[:, :, None], weight[:, :, None], bias, strides, paddings, dilations)
        return convolution(*flat, transposed, (0, *output_padding), groups)[:, :, 0]
    if transposed:
        x, weight, padding = _untransposed(x, weight, stride, padding, dilation, output_padding, groups)
        stride = (1, 1)
    else:
        padding = (padding[1], padding[1], padding[0], padding[0])
    x = F.pad(x, list(padding))
    outputs, _, *kernel = weight.shape
    size = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    ]
    places = _places(kernel, stride, dilation, size, x.shape[3])
    # One look-up a convolution: slices, and putting them together, take several times as long.
    columns = torch.index_select(x.flatten(2), 2, places)  # (B, C, k·k·H'·W')
    columns = columns.reshape(x.shape[0], groups, -1, size[0] * size[1])
    rows = weight.reshape(groups, outputs // groups, -1)
    y = (rows @ columns).reshape(x.shape[0], outputs, *size)
    return y if bias is None else y + bias[:, None, None]


def _places(
    kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], size: Sequence[int], width: int
) -> Tensor:
    """Where each entry of the kernel finds its pixel for each output: k·k·H'·W' places in an image."""
    down, right = (
        d * torch.arange(k)[:, None] + s * torch.arange(n)
        for k, s, d, n in zip(kernel, stride, dilation, size, strict=True)
    )
    return (width * down[:, None, :, None] + right[:, None, :]).flatten()


def _every(x: Tensor, dim: int, start: int, step: int, count: int) -> Tensor:
    """`count` places from `start`, every step-th."""
    return torch.ops.aten.slice.Tensor(x, dim, start, start + step * (count - 1) + 1, step)  # type: ignore[no-any-return]


def _untransposed(
    x: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    """Input with zeros between its pixels, kernels turned around, padding: of a convolution of stride 1."""
    batch, channels, height, width = x.shape
    spread = F.pad(x[:, :, :, None, :, None], (0, stride[1] - 1, 0, 0, 0, stride[0] - 1))
    spread = spread.reshape(batch, channels, height * stride[0], width * stride[1])
    kernels = weight.reshape(groups, -1, *weight.shape[1:]).transpose(1, 2).flatten(0, 1).flip(2, 3)
    around = []
    for axis in (1, 0):
        before = dilation[axis] * (weight.shape[2 + axis] - 1) - padding[axis]
        around += [before, before + output_padding[axis] - (stride[axis] - 1)]
    return spread, kernels, tuple(around)


def average_pool(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """What aten.avg_pool2d does."""
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
    """How many there are along an axis; none starts in the padding behind."""
    room = length + 2 * padding - kernel
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    return count - 1 if ceil_mode and (count - 1) * stride >= length + padding else count


# For torch.export.
DECOMPOSITIONS = {
    torch.ops.aten.convolution.default: convolution,
    torch.ops.aten.avg_pool2d.default: average_pool,
}
