"""Let a model in training take a piece of a batch with one sample, or none.

Processes and `accumulate` divide every batch; the last one of an epoch may be smaller than their product.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

# The fewest samples whose mean and variance batch norm takes.
LEAST = 2


def batch_norms_in(model: nn.Module) -> list[nn.Module]:
    """Return the layers of a model that take statistics of a batch in training mode."""
    return [module for module in model.modules() if _takes_statistics(module)]


def _takes_statistics(module: nn.Module) -> bool:
    """Return whether a layer is a batch norm, or says that it is like one."""
    return isinstance(module, _BatchNorm) or getattr(type(module), "takes_statistics", False) is True


@contextlib.contextmanager
def statistics_for(samples: int, norms: Sequence[nn.Module]) -> Iterator[None]:
    """Let batch norm use its running statistics inside this context if there are fewer than two samples."""
    changed = [norm for norm in norms if norm.training] if samples < LEAST else []
    for norm in changed:
        norm.training = False
    try:
        yield
    finally:
        for norm in changed:
            norm.training = True


def stand_in(x: Tensor) -> Tensor:
    """Return one sample in place of none.

    Not every module of torch takes an empty batch. A sample whose logits are dropped gives all weights the
    gradient 0, which processes that share a step need. Its values differ from each other, because some
    derivatives do not exist where all are equal.
    """
    shape = x.shape[1:]
    return torch.linspace(0, 1, math.prod(shape), dtype=x.dtype, device=x.device).view(1, *shape)
