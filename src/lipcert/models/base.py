"""Share the registry and the initialisation between all architectures."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, TypeVar

from torch import nn

from lipcert.bounds.arguments import checked_count
from lipcert.bounds.tracing.program import checked_shape
from lipcert.errors import InputError
from lipcert.models.memory import built
from lipcert.registry import Registry
from lipcert.types import Shape

M = TypeVar("M", bound=nn.Module)

MODELS: Registry[nn.Module] = Registry("model", package="lipcert.models")


def initialise(model: M, gain: float = math.sqrt(2)) -> M:
    """Draw normal weights of deviation gain/√fan_in (kaiming_normal) and set all biases to zero."""
    if not 0 < gain < math.inf:
        raise InputError(f"gain: expected a number > 0, got {gain}")
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.normal_(module.weight, std=gain / math.sqrt(module.weight[0].numel()))
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return model


def create(name: str, *, num_classes: int, input_shape: Shape | list[int], **arguments: Any) -> nn.Module:
    """Create a registered architecture for this many classes and this input.

    Example:
        >>> create("mlp", num_classes=3, input_shape=(2,), widths=[8])
        Sequential(
          (0): Linear(in_features=2, out_features=8, bias=True)
          (1): MinMax()
          (2): Linear(in_features=8, out_features=3, bias=True)
        )
    """
    checked_count("num_classes", num_classes)
    shape = checked_shape(input_shape)
    build = partial(MODELS.create, name, num_classes=num_classes, input_shape=shape, **arguments)
    return built(build)
