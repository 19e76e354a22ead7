"""MinMax: sorts pairs of adjacent channels; a permutation at every point, so gradients keep their norm.

Anil, Lucas, Grosse. Sorting Out Lipschitz Function Approximation. ICML 2019 (GroupSort with groups of 2).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lipcert.bounds import Constant, rule
from lipcert.errors import InputError


def minmax(x: Tensor, halves: bool = False) -> Tensor:
    """Sort channels (2k, 2k+1) of dimension 1 into (min, max); or channels (k, k + C/2), two halves.

    Example:
        >>> minmax(torch.tensor([[3.0, 1.0, 2.0, 5.0]]))
        tensor([[1., 3., 2., 5.]])
        >>> minmax(torch.tensor([[3.0, 1.0, 2.0, 5.0]]), halves=True)
        tensor([[2., 1., 3., 5.]])
    """
    if x.shape[1] % 2:
        raise InputError(f"MinMax: expected an even number of channels, got {x.shape[1]}")
    half = x.shape[1] // 2
    shape, dim = ((2, half), 1) if halves else ((half, 2), 2)
    pairs = x.reshape(x.shape[0], *shape, *x.shape[2:])  # (B, C/2, 2, ...) or (B, 2, C/2, ...)
    # A choice between each pair and its mirror image: half the backward kernels of min and max.
    first, second = pairs.detach().chunk(2, dim)
    return torch.where(first > second, pairs.flip(dim), pairs).flatten(1, 2)


class MinMax(nn.Module):
    """`minmax` as a module: 1-Lipschitz, exact in floating point."""

    def __init__(self, halves: bool = False) -> None:
        super().__init__()
        self.halves = halves

    def forward(self, x: Tensor) -> Tensor:
        """Pairs sorted; same shape."""
        return minmax(x, self.halves)

    def extra_repr(self) -> str:
        """Shown by print."""
        return "halves=True" if self.halves else ""


@rule(
    MinMax,
    examples=[
        lambda: (MinMax(), (6,)),
        lambda: (MinMax(), (4, 3, 3)),
        lambda: (MinMax(halves=True), (6,)),
        lambda: (MinMax(halves=True), (4, 3, 3)),
    ],
)
class MinMaxRule(Constant):
    """A permutation of the input: 1."""
