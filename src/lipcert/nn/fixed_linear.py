r"""A dense layer with fixed rows: nothing in it is trained.

$$ y = W x, \qquad K = \|W\|_2 $$

Heads without weights are such layers. Their rows are known, so the constants of pairs of logits follow from
them as for any dense layer.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.bounds.rules.linear import LinearRule
from lipcert.errors import InputError
from lipcert.nn.bases.derived import linear_with


class FixedLinear(nn.Module):
    """The map x ↦ Wx with the given rows W.

    The rows are a buffer that no file of weights contains: the arguments of the model make them again.

    Example:
        >>> FixedLinear(torch.eye(2, 3))(torch.tensor([[5.0, 6.0, 7.0]]))
        tensor([[5., 6.]])
    """

    weight: Tensor
    bias = None  # there is none, as in nn.Linear(bias=False)

    def __init__(self, rows: Tensor) -> None:
        super().__init__()
        if rows.ndim != 2 or rows.numel() == 0:
            raise InputError(
                f"rows: expected a matrix with at least one entry, got shape {tuple(rows.shape)}"
            )
        self.register_buffer("weight", rows.detach().clone(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return Wx."""
        return F.linear(x, self.weight)

    def plain(self) -> nn.Module:
        """Return the equivalent nn.Linear."""
        return linear_with(self.weight, None)

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        outputs, inputs = self.weight.shape
        return f"{inputs}, {outputs}"


@rule(
    FixedLinear,
    examples=[
        lambda: (FixedLinear(torch.eye(2, 3)), (3,)),
        lambda: (FixedLinear(torch.tensor([[0.6, 0.8, 0.0], [-3.0, 0.1, 2.0]])), (2, 3)),
    ],
)
class FixedLinearRule(LinearRule):
    """The constant is the norm of the rows."""
