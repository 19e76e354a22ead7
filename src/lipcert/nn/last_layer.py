r"""Last-layer normalisation gives a head rows of length 1.

Singla, Singla, Feizi. Improved Deterministic l2 Robustness on CIFAR-10 and CIFAR-100. ICLR 2022.

$$ f_i = \frac{w_i}{\|w_i\|} \cdot x + b_i $$

Every logit is 1-Lipschitz. The constant of a difference of two logits follows from the rows, as for any

Also in deel-torchlip and orthogonium.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.nn.bases.linear import DerivedLinear, DerivedLinearRule


class LLNLinear(DerivedLinear):
    """Divide every row by its length, for heads: each logit is 1-Lipschitz; a row of zeros stays zero."""

    def first(self) -> Tensor:
        """Return the initial weights of nn.Linear."""
        return nn.Linear(self.in_features, self.out_features).weight.detach()

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return W."""
        (raw,) = sources
        return (raw * _inverse_lengths(raw)[:, None],)

    def forward(self, x: Tensor) -> Tensor:
        """Return Wx + b; training divides the outputs, which are fewer numbers than the weights."""
        if not self.training:
            return super().forward(x)
        y = F.linear(x, self.raw) * _inverse_lengths(self.raw)
        return y if self.bias is None else y + self.bias


def _inverse_lengths(rows: Tensor) -> Tensor:
    """Return 1/‖w‖, and 1 for a row of zeros."""
    length = torch.linalg.vector_norm(rows, dim=1)
    return torch.where(length > 0, length, 1.0).reciprocal()


@rule(
    LLNLinear,
    examples=[lambda: (LLNLinear(6, 4), (6,)), lambda: (LLNLinear(2, 5, bias=False), (2,))],
)
class LLNLinearRule(DerivedLinearRule):
    """The constant is at most √N, although every row has length 1."""
