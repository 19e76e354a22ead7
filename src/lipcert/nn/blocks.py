r"""Blocks with branches. Their bounds follow from the sum or concatenation in their own code.

$$ \operatorname{Lip}(x + g(x)) \le 1 + K_g,
   \qquad \operatorname{Lip}([g_1(x), g_2(x), \dots]) \le \sqrt{\textstyle\sum_i K_i^2} $$
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    """x + body(x): Lipschitz constant at most 1 + K_body."""

    def __init__(self, *body: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x: Tensor) -> Tensor:
        """The input and what the body adds to it."""
        added: Tensor = self.body(x)
        return x + added


class Branches(nn.Module):
    """[branch₁(x), branch₂(x), …] along dimension 1: at most √ΣK_i²."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        """All branches side by side."""
        return torch.cat([branch(x) for branch in self.branches], dim=1)
