"""Measure how far results lie from the expected ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

# Results with a smaller norm than this are compared with it.
_LEAST = 1e-3


def deviation(found: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    """Return the largest distance of two tensors, relative to the norm of the expected one.

    Example:
        >>> import torch
        >>> deviation([torch.tensor([3.0, 4.5])], [torch.tensor([3.0, 4.0])])
        0.1000...
    """
    if [t.shape for t in found] != [t.shape for t in expected]:
        raise ValueError("the shapes differ from those on the CPU")
    pairs = zip(found, expected, strict=True)
    distances = [float((a - b).norm() / b.norm().clamp_min(_LEAST)) for a, b in pairs]
    return max((math.inf if math.isnan(d) else d for d in distances), default=0.0)
