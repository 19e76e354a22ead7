"""GloRo: cross-entropy with one extra class, "not certified at radius eps".

Leino, Wang, Fredrikson. Globally-Robust Neural Networks. ICML 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.losses.base import LOSSES, Loss, Number, check_number
from lipcert.losses.softmax import cross_entropy
from lipcert.types import PairLip


def gloro_logits(logits: Tensor, lip: PairLip, eps: Number) -> Tensor:
    r"""Append the bottom logit, which wins exactly when `eps` is not certified: (B, N + 1).

    $$ f_\bot = \max_{i \ne j} f_i + \varepsilon K_{ij}, \quad j = \arg\max f $$

    Example:
        >>> lip = PairLip(features=torch.tensor(1.0), head=torch.tensor([[1.0], [0.0]]))
        >>> gloro_logits(torch.tensor([[3.0, 1.0]]), lip, eps=0.5)
        tensor([[3.0000, 1.0000, 1.5000]])
    """
    top = logits.argmax(dim=1)  # (B,)
    rivals = logits + eps * lip.rows(top)  # (B, N)
    rivals = rivals.scatter(1, top[:, None], -torch.inf)  # a class is not its own rival
    return torch.cat([logits, rivals.amax(dim=1, keepdim=True)], dim=1)


@LOSSES.register("gloro", example={"eps": 0.1})
@dataclass(frozen=True)
class GloRo(Loss):
    r"""Add a class "not certified at eps" to the cross-entropy, whose gradient keeps K small.

    $$ \mathrm{CE}\big(s \cdot [f, f_\bot],\ y\big) $$
    """

    eps: Number
    temperature: Number = 1.0

    def __post_init__(self) -> None:
        check_number("eps", self.eps, above=0)
        check_number("temperature", self.temperature, above=0)

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample: (B,)."""
        return cross_entropy(self.temperature * gloro_logits(logits, lip, self.eps), labels)

    def whole_lipschitz(self, k_f: float) -> float:
        """Return K_f times the temperature."""
        return k_f * float(self.temperature)
