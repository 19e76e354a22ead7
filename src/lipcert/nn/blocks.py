r"""Blocks with branches, whose bounds follow from the sum or concatenation in their own code.

$$ \operatorname{Lip}(x + g(x)) \le 1 + K_g,
   \qquad \operatorname{Lip}([g_1(x), g_2(x), \dots]) \le \sqrt{\textstyle\sum_i K_i^2} $$
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    """The block x + body(x), with a Lipschitz constant of at most 1 + K_body."""

    def __init__(self, *body: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x: Tensor) -> Tensor:
        """Add what the body returns to the input."""
        added: Tensor = self.body(x)
        return x + added


class Branches(nn.Module):
    """The block [branch₁(x), branch₂(x), …] along dimension 1, with a constant of at most √ΣK_i²."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        """Concatenate the outputs of all branches."""
        return torch.cat([branch(x) for branch in self.branches], dim=1)
