"""A module run without numbers, to see what it makes of shapes and memory."""

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
    """Inputs of these shapes, and what the module returns for them; the module itself stays as it is."""
    weights = {k: v.to("meta") for k, v in [*module.named_parameters(), *module.named_buffers()]}
    dtype = next((v.dtype for v in weights.values() if v.is_floating_point()), None)
    inputs = tuple(
        torch.empty(batch, *shape, dtype=dtype, device="meta").contiguous(memory_format=layout)
        for shape in input_shapes
    )
    return inputs, torch.func.functional_call(module, weights, inputs)
