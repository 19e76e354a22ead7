r"""FullSort sorts all channels, GroupSort with a single group.

$$ x \mapsto \operatorname{sort}(x_1, \dots, x_C) $$

Anil, Lucas, Grosse. Sorting Out Lipschitz Function Approximation. ICML 2019.

Also in deel-torchlip.
"""

from __future__ import annotations

from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.bounds.contract import Channelwise
from lipcert.nn.groupsort import group_sort


class FullSort(nn.Module):
    """Sort all channels, smallest first: exact in floating point, keeps gradients.

    Example:
        >>> import torch
        >>> FullSort()(torch.tensor([[3.0, 1.0, 2.0]]))
        tensor([[1., 2., 3.]])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return the input with its channels sorted."""
        return group_sort(x, x.shape[1])


@rule(FullSort, examples=[lambda: (FullSort(), (5,)), lambda: (FullSort(), (3, 2, 3))])
class FullSortRule(Channelwise):
    """The constant is 1: the output is a permutation of the input at every point."""
