r"""GroupSort sorts groups of k adjacent channels; MinMax is k = 2, full sort is k = all.

$$ (x_{gk}, \dots, x_{gk+k-1}) \mapsto \operatorname{sort}(x_{gk}, \dots, x_{gk+k-1}), \ g = 0, 1, \dots $$

Anil, Lucas, Grosse. Sorting Out Lipschitz Function Approximation. ICML 2019.

Also in deel-torchlip.
"""

from __future__ import annotations

from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.bounds.contract import Channelwise
from lipcert.errors import InputError


def group_sort(x: Tensor, size: int) -> Tensor:
    """Sort every group of `size` channels of dimension 1, smallest first.

    Example:
        >>> import torch
        >>> group_sort(torch.tensor([[3.0, 1.0, 2.0, 6.0, 5.0, 4.0]]), size=3)
        tensor([[1., 2., 3., 4., 5., 6.]])
    """
    if x.shape[1] % size:
        raise InputError(f"GroupSort: expected a multiple of {size} channels, got {x.shape[1]}")
    groups = x.reshape(x.shape[0], x.shape[1] // size, size, *x.shape[2:])
    return groups.sort(dim=2).values.flatten(1, 2)


class GroupSort(nn.Module):
    """Sort groups of `size` adjacent channels: exact in floating point, keeps gradients."""

    def __init__(self, size: int) -> None:
        super().__init__()
        if size < 1:
            raise InputError(f"size: expected at least 1, got {size}")
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        """Return the input with every group sorted."""
        return group_sort(x, self.size)

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return f"{self.size}"


@rule(GroupSort, examples=[lambda: (GroupSort(3), (6,)), lambda: (GroupSort(4), (4, 3, 3))])
class GroupSortRule(Channelwise):
    """The constant is 1: the output is a permutation of the input at every point."""
