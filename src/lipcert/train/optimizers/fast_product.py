"""Multiply large float32 matrices on a CPU by oneDNN, which is fast on processors of every maker.

Torch multiplies float32 matrices by MKL there, which leaves half the vector width of AMD processors unused.
`python benchmarks/optimizer.py` measures what that costs.
"""

from __future__ import annotations

import torch
from torch import Tensor

# From so many products of numbers on, the call itself no longer matters.
_WORTHWHILE = 1 << 21


def product(left: Tensor, right: Tensor) -> Tensor:
    """Return the matrix product.

    Example:
        >>> product(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]]))
        tensor([[11.]])
    """
    if is_worthwhile(left, right):
        found: Tensor = torch.ops.mkldnn._linear_pointwise(left, right.T, None, "none", [], "")
        return found
    return left @ right


def is_worthwhile(left: Tensor, right: Tensor) -> bool:
    """Return whether oneDNN is there, takes these matrices, and they are large enough."""
    return bool(
        left.device.type == right.device.type == "cpu"
        and left.dtype == right.dtype == torch.float32
        and left.numel() * right.shape[1] >= _WORTHWHILE
        and torch.backends.mkldnn.enabled
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    )
