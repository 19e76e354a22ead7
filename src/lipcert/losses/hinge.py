"""Multi-margin: the hinge loss with which CPL was trained.

Meunier, Delattre, Araujo, Allauzen. A Dynamical System Perspective for Lipschitz Neural Networks. ICML 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.losses.base import LOSSES, Loss, Number, check_number, finite, off_label
from lipcert.types import PairLip


def multi_margin(logits: Tensor, labels: Tensor, margin: Number) -> Tensor:
    r"""Return the multiclass hinge loss per sample: (B,).

    $$ \frac1N \sum_{i \ne y} \max(0, m - f_y + f_i) $$

    Example:
        >>> multi_margin(torch.tensor([[3.0, 1.0, 2.9]]), torch.tensor([0]), margin=0.7)
        tensor([0.2000])
    """
    logits = finite(logits)
    short = margin - logits.gather(1, labels[:, None]) + logits  # (B, N)
    return torch.where(off_label(logits, labels), short.clamp_min(0.0), 0.0).mean(dim=1)


@LOSSES.register("multi-margin")
@dataclass(frozen=True)
class MultiMargin(Loss):
    """Require a margin by a hinge; for layers whose constant is 1."""

    margin: Number = 0.7

    uses_constants = False

    def __post_init__(self) -> None:
        check_number("margin", self.margin, above=0)

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample: (B,)."""
        return multi_margin(logits, labels, self.margin)
