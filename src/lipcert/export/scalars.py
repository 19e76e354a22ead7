"""Keep numbers of a float64 program as float64 tensors: torch's exporter to ONNX rounds scalars to float32.

A rounded scalar makes another network, whose radius would be wrong: numbers that cannot be kept are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx

from lipcert.errors import InputError

aten = torch.ops.aten

# Operators that take tensors in place of scalars, some under another name.
_WITH_TENSORS: dict[Any, Any] = {
    **{op: op for op in (aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor)},
    aten.clamp.default: aten.clamp.Tensor,
    **{aten.le.Scalar: aten.le.Tensor, aten.lt.Scalar: aten.lt.Tensor, aten.ne.Scalar: aten.ne.Tensor},
    **{aten.ge.Scalar: aten.ge.Tensor, aten.gt.Scalar: aten.gt.Tensor, aten.eq.Scalar: aten.eq.Tensor},
}


def arithmetic() -> dict[Any, Callable[..., Any]]:
    """Return sums and products for operators whose numbers ONNX stores as float32 attributes."""
    known = torch._decomp.get_decompositions([aten.hardtanh.default, aten.leaky_relu.default])
    return {**known, aten._native_batch_norm_legit_no_training.default: _batch_norm}


def _batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Apply batch norm in evaluation mode; the two statistics for training are empty."""
    shape = (-1, *[1] * (x.dim() - 2))
    scale = 1 / (var + eps).sqrt()
    scale = scale if weight is None else scale * weight
    y = (x - mean.reshape(shape)) * scale.reshape(shape)
    return y if bias is None else y + bias.reshape(shape), x.new_zeros(0), x.new_zeros(0)


def with_exact_scalars(module: fx.GraphModule) -> None:
    """Replace every scalar that float32 rounds by a tensor."""
    constants: dict[float, fx.Node] = {}
    for node in list(module.graph.nodes):
        if node.op == "call_function" and _inexact(node):
            _replace(module, node, constants)
    module.graph.lint()
    module.recompile()


def register_tables(module: fx.GraphModule) -> None:
    """Register tensors made during tracing: as bare attributes they cannot be traced again."""
    known = dict(module.named_buffers()).keys() | dict(module.named_parameters()).keys()
    for name in {str(node.target) for node in module.graph.nodes if node.op == "get_attr"} - known:
        table = getattr(module, name)
        if isinstance(table, Tensor):
            delattr(module, name)
            module.register_buffer(name, table)


def _inexact(node: fx.Node) -> bool:
    return any(_is_lost(value) for value in (*node.args, *node.kwargs.values()))


def _is_lost(value: Any) -> bool:
    """Return whether the value is a float that float32 rounds."""
    with np.errstate(over="ignore"):
        return isinstance(value, float) and float(np.float32(value)) != value and value == value


def _replace(module: fx.GraphModule, node: fx.Node, constants: dict[float, fx.Node]) -> None:
    if node.target == aten.scalar_tensor.default:
        node.replace_all_uses_with(_constant(module, node.args[0], constants))
        module.graph.erase_node(node)
        return
    if node.target not in _WITH_TENSORS:
        raise InputError(f"export: {node.target} with {node.args[1:]} cannot be written exactly in float64")
    if _is_lost(node.kwargs.get("alpha")):
        with module.graph.inserting_before(node):
            scale = _constant(module, node.kwargs["alpha"], constants)
            scaled = module.graph.call_function(aten.mul.Tensor, (node.args[1], scale))
        node.args, node.kwargs = (node.args[0], scaled), {}
    node.target = _WITH_TENSORS[node.target]
    node.args = tuple(_constant(module, a, constants) if isinstance(a, float) else a for a in node.args)


def _constant(module: fx.GraphModule, value: Any, constants: dict[float, fx.Node]) -> fx.Node:
    """Return a buffer of that value, made once."""
    if value not in constants:
        name = f"scalar{len(constants)}"
        module.register_buffer(name, torch.tensor(value, dtype=torch.float64))
        first = next(iter(module.graph.nodes))
        with module.graph.inserting_before(first):
            constants[value] = module.graph.get_attr(name)
    return constants[value]
