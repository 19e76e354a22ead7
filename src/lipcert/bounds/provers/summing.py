"""Convolutions as plain sums of products, for devices whose libraries may compute them in another way.

The bounds on rounding errors hold for sums of products in any order. A GPU's library may convolve by Winograd
or Fourier transforms, whose errors are larger. Off the CPU a convolution is therefore made of patches that
are written out (im2col) and one matrix product; a transposed one of a matrix product and patches that are
added up (col2im). See docs/proofs.md, theorem 4.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lipcert.errors import InputError

# Numbers in the patches that are written out at once: 256 MB.
_CHUNK = 1 << 25

_aten = torch.ops.aten


def summing(device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Compute convolutions on this device as sums of products; those of the CPU are such sums already."""
    return contextlib.nullcontext() if device.type == "cpu" else SumsOfProducts()  # type: ignore[no-untyped-call]


class SumsOfProducts(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that replaces every convolution by patches and matrix products."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Replace convolutions and their adjoints; refuse other operations that convolve."""
        if function is _aten.convolution.default:
            return convolution(*args, **(kwargs or {}))
        if function is _aten.convolution_backward.default:
            return _backward(*args, **(kwargs or {}))
        name = str(function.overloadpacket)
        if "conv" not in name or "conj" in name:
            return function(*args, **(kwargs or {}))
        with self:  # inference mode leaves conv2d and the like whole, which are made of the two above
            parts = function.decompose(*args, **(kwargs or {}))
        if parts is NotImplemented:
            raise InputError(f"float64 certificates off the CPU do not cover how {name} sums")
        return parts


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
    """Return what torch's operation of this name returns, from patches and matrix products."""
    if weight.ndim == 3:
        flat = (x.unsqueeze(-2), weight.unsqueeze(-2), bias, [1, *stride], [0, *padding], [1, *dilation])
        return convolution(*flat, transposed, [0, *output_padding], groups).squeeze(-2)
    if weight.ndim != 4:
        raise InputError(
            f"float64 certificates off the CPU do not cover kernels of shape {tuple(weight.shape)}"
        )
    if transposed:
        axes = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding, strict=True)
        size = [(n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, k, s, p, d, o in axes]
        out = _added_up(x, weight, size, stride, padding, dilation, groups)
    else:
        out = _patched(x, weight, stride, padding, dilation, groups)
    return out if bias is None else out + bias[:, None, None]


def _patched(
    x: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """Write out the patches of the image and multiply them by the kernels."""
    kernel = weight.shape[2:]
    axes = zip(x.shape[2:], kernel, stride, padding, dilation, strict=True)
    size = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in axes]
    rows = weight.reshape(groups, weight.shape[0] // groups, -1)  # (G, o, c·k²)

    def one(piece: Tensor) -> Tensor:
        patches = F.unfold(piece, tuple(kernel), tuple(dilation), tuple(padding), tuple(stride))
        grouped = patches.view(len(piece), groups, -1, patches.shape[-1])
        return (rows @ grouped).reshape(len(piece), -1, *size)

    step = max(1, _CHUNK // (x.shape[1] * math.prod(kernel) * math.prod(size)))
    return torch.cat([one(piece) for piece in torch.split(x, step)])


def _added_up(
    y: Tensor,
    weight: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """Multiply by the transposed kernels and add up the patches, on an image of this size."""
    kernel = weight.shape[2:]
    axes = list(zip(y.shape[2:], kernel, stride, dilation, strict=True))
    whole = [(n - 1) * s + d * (k - 1) + 1 for n, k, s, d in axes]
    columns = weight.reshape(groups, weight.shape[0] // groups, -1).mT  # (G, c·k², o)
    # The patches lie on a canvas from which the padding is cut; outputs beyond it see nothing and are 0.
    ends = [[-p, p + n - c] for n, p, c in zip(size, padding, whole, strict=True)]

    def one(piece: Tensor) -> Tensor:
        grouped = piece.reshape(len(piece), groups, -1, math.prod(piece.shape[2:]))
        patches = (columns @ grouped).flatten(1, 2)
        canvas = F.fold(patches, tuple(whole), tuple(kernel), tuple(dilation), 0, tuple(stride))
        return F.pad(canvas, (*ends[1], *ends[0]))

    step = max(1, _CHUNK // (columns.shape[0] * columns.shape[1] * math.prod(y.shape[2:])))
    return torch.cat([one(piece) for piece in torch.split(y, step)])


def _backward(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return the adjoint of a convolution applied to `gradient`, the only part that proofs ask for."""
    if transposed or list(output_mask) != [True, False, False] or weight.ndim != 4:
        raise InputError("float64 certificates off the CPU do not cover gradients of convolutions")
    return _added_up(gradient, weight, x.shape[2:], stride, padding, dilation, groups), None, None
