"""Convert calls in a user's forward to modules that compute the same.

A call that is not listed here, or has an unsupported argument, has no bound.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

from lipcert.bounds.rules.averages import Mean
from lipcert.bounds.rules.joins import Add, Concatenate
from lipcert.bounds.rules.shapes import Permute, Reshape

Converted = tuple[nn.Module, tuple[fx.Node, ...]] | None


def module_of(node: fx.Node) -> Converted:
    """Return the module a call stands for, and its inputs; None if the call is not supported."""
    convert = _FUNCTIONS.get(node.target if node.op == "call_function" else f"Tensor.{node.target}")
    try:
        return convert(*node.args, **node.kwargs) if convert else None
    except TypeError:  # an unsupported argument, such as torch.add's alpha
        return None


def asks_for_size(node: fx.Node) -> bool:
    """Return whether a node is x.size(…), x.shape or x.shape[…]: numbers that do not depend on the input."""
    if node.op == "call_method" and node.target == "size":
        return True
    if node.op == "call_function" and node.target is getattr:
        return node.args[1] == "shape"
    of = node.args[0] if node.op == "call_function" and node.target is operator.getitem else None
    return isinstance(of, fx.Node) and asks_for_size(of)


def _is_batch_size(size: Any) -> bool:
    """Return whether a size is x.size(0) or x.shape[0]."""
    return isinstance(size, fx.Node) and asks_for_size(size) and bool(size.args[-1] == 0)


def _add(a: Any, b: Any) -> Converted:
    return (Add(), (a, b)) if isinstance(a, fx.Node) and isinstance(b, fx.Node) else None


def _cat(tensors: Any, dim: int = 0) -> Converted:
    if dim == 0 or not all(isinstance(t, fx.Node) for t in tensors):
        return None
    return Concatenate(dim), tuple(tensors)


def _flatten(x: fx.Node, start_dim: int = 0, end_dim: int = -1) -> Converted:
    return None if start_dim == 0 else (nn.Flatten(start_dim, end_dim), (x,))


def _permute(x: fx.Node, *dims: Any) -> Converted:
    order = tuple(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else dims
    return (Permute(*order), (x,)) if order and order[0] == 0 else None


def _reshape(x: fx.Node, *sizes: Any) -> Converted:
    shape = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int | fx.Node) else sizes
    if len(shape) < 2 or not all(isinstance(n, int) for n in shape[1:]):
        return None
    # The batch comes first, by its size or as -1 when the other sizes are given.
    if not (_is_batch_size(shape[0]) or (shape[0] == -1 and -1 not in shape[1:])):
        return None
    return Reshape(*shape[1:]), (x,)


def _one_input(make: Callable[..., nn.Module]) -> Callable[..., Converted]:
    """Return a converter for a function whose other arguments are those of the module."""

    def convert(x: fx.Node, *args: Any, **kwargs: Any) -> Converted:
        return make(*args, **kwargs), (x,)

    return convert


def _dropout(p: float = 0.5, training: bool = True, inplace: bool = False) -> nn.Module:
    return nn.Dropout(p, inplace).train(training)


def _leaky_relu(negative_slope: float = 0.01, inplace: bool = False) -> nn.Module:
    return nn.LeakyReLU(negative_slope, inplace)


def _relu6(inplace: bool = False) -> nn.Module:
    return nn.Hardtanh(0, 6, inplace)  # with whole numbers, as torch passes them on


def _max_pool(
    kernel_size: int,
    stride: int | None = None,
    padding: int = 0,
    dilation: int = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> nn.Module:
    return nn.MaxPool2d(kernel_size, stride, padding, dilation, return_indices, ceil_mode)


def _mean(x: fx.Node, dim: Any = None, keepdim: bool = False) -> Converted:
    dims = (dim,) if isinstance(dim, int) else tuple(dim or ())
    return (Mean(*dims, keepdim=keepdim), (x,)) if dims and 0 not in dims else None


def _softmax(make: Callable[..., nn.Module]) -> Callable[..., Converted]:
    """Return a converter for softmax along a dimension that is given and is not the batch."""

    def convert(
        x: fx.Node, dim: int | None = None, _stacklevel: int = 3, dtype: torch.dtype | None = None
    ) -> Converted:
        return (make(dim=dim), (x,)) if dim and dtype is None else None

    return convert


_relu = _one_input(nn.ReLU)
_softmaxes, _log_softmaxes = _softmax(nn.Softmax), _softmax(nn.LogSoftmax)
_tanh = _one_input(nn.Tanh)
_sigmoid = _one_input(nn.Sigmoid)

_FUNCTIONS: dict[Any, Callable[..., Converted]] = {
    operator.add: _add,
    operator.iadd: _add,  # where the value is not used elsewhere (lipcert.bounds.tracing.overwriting)
    torch.add: _add,
    "Tensor.add": _add,
    torch.cat: _cat,
    torch.flatten: _flatten,
    "Tensor.flatten": _flatten,
    torch.permute: _permute,
    "Tensor.permute": _permute,
    torch.reshape: _reshape,
    "Tensor.reshape": _reshape,
    "Tensor.view": _reshape,
    torch.relu: _relu,
    F.relu: _relu,
    "Tensor.relu": _relu,
    torch.tanh: _tanh,
    F.tanh: _tanh,
    "Tensor.tanh": _tanh,
    torch.sigmoid: _sigmoid,
    F.sigmoid: _sigmoid,
    "Tensor.sigmoid": _sigmoid,
    F.leaky_relu: _one_input(_leaky_relu),
    F.elu: _one_input(nn.ELU),
    F.silu: _one_input(nn.SiLU),
    F.gelu: _one_input(nn.GELU),
    F.dropout: _one_input(_dropout),
    F.max_pool2d: _one_input(_max_pool),
    F.avg_pool2d: _one_input(nn.AvgPool2d),
    F.adaptive_avg_pool1d: _one_input(nn.AdaptiveAvgPool1d),
    F.adaptive_avg_pool2d: _one_input(nn.AdaptiveAvgPool2d),
    torch.mean: _mean,
    "Tensor.mean": _mean,
    F.relu6: _one_input(_relu6),
    F.hardtanh: _one_input(nn.Hardtanh),
    F.hardswish: _one_input(nn.Hardswish),
    F.mish: _one_input(nn.Mish),
    F.softplus: _one_input(nn.Softplus),
    F.softmax: _softmaxes,
    torch.softmax: _softmaxes,
    "Tensor.softmax": _softmaxes,
    F.log_softmax: _log_softmaxes,
    torch.log_softmax: _log_softmaxes,
    "Tensor.log_softmax": _log_softmaxes,
}
