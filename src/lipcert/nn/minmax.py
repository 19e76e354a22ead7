r"""MinMax sorts pairs of adjacent channels; a permutation at every point, so gradients keep their norm.

$$ (x_{2k}, x_{2k+1}) \mapsto \big(\min(x_{2k}, x_{2k+1}),\ \max(x_{2k}, x_{2k+1})\big) $$

Anil, Lucas, Grosse. Sorting Out Lipschitz Function Approximation. ICML 2019 (GroupSort with groups of 2).

Also in deel-torchlip and orthogonium.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.bounds.contract import Channelwise
from lipcert.errors import InputError
from lipcert.transforms import is_transformed


def minmax(x: Tensor, halves: bool = False) -> Tensor:
    """Sort channels (2k, 2k+1) of dimension 1 into (min, max); with `halves`, channels (k, k + C/2).

    Example:
        >>> minmax(torch.tensor([[3.0, 1.0, 2.0, 5.0]]))
        tensor([[1., 3., 2., 5.]])
        >>> minmax(torch.tensor([[3.0, 1.0, 2.0, 5.0]]), halves=True)
        tensor([[2., 1., 3., 5.]])
    """
    if x.shape[1] % 2:
        raise InputError(f"MinMax: expected an even number of channels, got {x.shape[1]}")
    if is_transformed(x):
        first, second = _pairs(x.detach(), halves)
        return _swapped(x, first > second, halves)
    ordered: Tensor = _Order.apply(x, halves)  # type: ignore[no-untyped-call]
    return ordered


# Integers as wide as a floating-point number of so many bytes.
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}

# Sorting is limited by memory bandwidth: written in place it takes a third of the time of torch's own
# minimum, maximum and their gradients.


class _Order(torch.autograd.Function):
    """Sort the pairs; the gradient takes the same permutation back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, halves: bool) -> Tensor:
        first, second = _pairs(x, halves)
        y = torch.empty_like(x)
        low, high = _pairs(y, halves)
        torch.minimum(first, second, out=low)
        torch.maximum(first, second, out=high)
        if ctx.needs_input_grad[0]:
            ctx.swapped, ctx.halves = first > second, halves
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _Swap.apply(gradients[0], ctx.swapped, ctx.halves), None  # type: ignore[no-untyped-call]


class _Swap(torch.autograd.Function):
    """Swap the marked pairs, a linear map that is its own adjoint."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, swapped: Tensor, halves: bool) -> Tensor:
        ctx.swapped, ctx.halves = swapped, halves
        if is_transformed(x):
            return _swapped(x, swapped, halves)
        return _exchanged(x, swapped, halves)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return _Swap.apply(gradients[0], ctx.swapped, ctx.halves), None, None  # type: ignore[no-untyped-call]


def _exchanged(x: Tensor, where: Tensor, halves: bool) -> Tensor:
    """Swap the marked pairs bit by bit: on a CPU `torch.where` is slower."""
    bits = x.view(_BITS[x.element_size()])
    y = torch.empty_like(bits)
    (first, second), (low, high) = _pairs(bits, halves), _pairs(y, halves)
    # A marked pair is exchanged by a ^ (a ^ b) = b; all bits of -1 are set.
    change = torch.bitwise_xor(first, second).bitwise_and_(where.to(bits.dtype).neg_())
    torch.bitwise_xor(first, change, out=low)
    torch.bitwise_xor(second, change, out=high)
    return y.view(x.dtype)


def _swapped(x: Tensor, where: Tensor, halves: bool) -> Tensor:
    """Swap the marked pairs by functions that every transform supports."""
    first, second = _pairs(x, halves)
    both = torch.where(where, second, first), torch.where(where, first, second)
    return torch.cat(both, 1) if halves else torch.stack(both, 2).reshape(x.shape)


def _pairs(x: Tensor, halves: bool) -> tuple[Tensor, Tensor]:
    """Return the first and the second of every pair, as views."""
    half = x.shape[1] // 2
    return (x[:, :half], x[:, half:]) if halves else (x[:, ::2], x[:, 1::2])


class MinMax(nn.Module):
    """Sort pairs of channels, neighbours or `halves`: exact in floating point, keeps gradients."""

    def __init__(self, halves: bool = False) -> None:
        super().__init__()
        self.halves = halves

    def forward(self, x: Tensor) -> Tensor:
        """Return the input with every pair sorted."""
        return minmax(x, self.halves)

    def extra_repr(self) -> str:
        """Return the text that print shows."""
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
class MinMaxRule(Channelwise):
    """The constant is 1: the output is a permutation of the input."""
