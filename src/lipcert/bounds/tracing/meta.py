"""Run a module on the meta device, without numbers, to see shapes and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.types import Shape


def run_on_meta(
    module: nn.Module,
    input_shapes: Sequence[Shape],
    batch: int,
    layout: torch.memory_format = torch.contiguous_format,
) -> tuple[tuple[Tensor, ...], Any]:
    """Return inputs of these shapes and the module's outputs for them, without changing the module."""
    weights = {k: v.to("meta") for k, v in [*module.named_parameters(), *module.named_buffers()]}
    dtype = next((v.dtype for v in weights.values() if v.is_floating_point()), None)
    inputs = tuple(
        torch.empty(batch, *shape, dtype=dtype, device="meta").contiguous(memory_format=layout)
        for shape in input_shapes
    )
    return inputs, torch.func.functional_call(module, weights, inputs)
