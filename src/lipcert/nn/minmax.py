"""MinMax: sorts pairs of adjacent channels; a permutation at every point, so gradients keep their norm.

Anil, Lucas, Grosse. Sorting Out Lipschitz Function Approximation. ICML 2019 (GroupSort with groups of 2).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lipcert.bounds import Constant, rule
from lipcert.errors import InputError


def minmax(x: Tensor) -> Tensor:
    """Sort channels (2k, 2k+1) of dimension 1 into (min, max).

    Example:
        >>> minmax(torch.tensor([[3.0, 1.0, 2.0, 5.0]]))
        tensor([[1., 3., 2., 5.]])
    """
    if x.shape[1] % 2:
        raise InputError(f"MinMax: expected an even number of channels, got {x.shape[1]}")
    pairs = x.reshape(x.shape[0], x.shape[1] // 2, 2, *x.shape[2:])  # (B, C/2, 2, ...)
    # A choice between each pair and its mirror image: half the backward kernels of min and max.
    swap = pairs.detach()[:, :, :1] > pairs.detach()[:, :, 1:]
    return torch.where(swap, pairs.flip(2), pairs).flatten(1, 2)


class MinMax(nn.Module):
    """`minmax` as a module: 1-Lipschitz, exact in floating point."""

    def forward(self, x: Tensor) -> Tensor:
        """Pairs sorted; same shape."""
        return minmax(x)


@rule(MinMax, examples=[lambda: (MinMax(), (6,)), lambda: (MinMax(), (4, 3, 3))])
class MinMaxRule(Constant):
    """A permutation of the input: 1."""
