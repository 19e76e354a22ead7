"""Certificate regularisation: cross-entropy that rewards the certified radius.

Singla, Singla, Feizi. Improved Deterministic l2 Robustness on CIFAR-10 and CIFAR-100. ICLR 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.losses.base import LOSSES, Loss, Number, check_number, off_label
from lipcert.losses.softmax import cross_entropy
from lipcert.types import PairLip


def label_radius(logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
    r"""Return how far the label's region reaches, negative outside it: (B,).

    $$ \min_{i \ne y} \frac{f_y - f_i}{K_{iy}} $$

    Example:
        >>> lip = PairLip(features=torch.tensor(2.0), head=torch.tensor([[1.0], [0.0]]))
        >>> label_radius(torch.tensor([[3.0, 1.0]]), torch.tensor([0]), lip)
        tensor([1.])
    """
    number, rivals = torch.finfo(logits.dtype), off_label(logits, labels)
    logits = logits.clamp(-(number.max**0.25), number.max**0.25)  # otherwise quotient and gradient overflow
    margin = logits.gather(1, labels[:, None]) - logits  # (B, N)
    constants = lip.rows(labels).clamp_min(number.eps)
    # The label's own quotient 0/0 must not reach the gradient.
    quotient = margin / torch.where(rivals, constants, 1.0)
    return torch.where(rivals, quotient, torch.inf).amin(dim=1)


@LOSSES.register("certificate-regularisation", example={"gamma": 0.1})
@dataclass(frozen=True)
class CertificateRegularisation(Loss):
    r"""Reward the radius of correct samples, weighted by γ; the gradient keeps K small.

    $$ \mathrm{CE}(f, y) - \gamma \max\Big(0,\ \min_{i \ne y} \frac{f_y - f_i}{K_{iy}}\Big) $$
    """

    gamma: Number

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, above=0, or_equal=True)

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample: (B,)."""
        reward = label_radius(logits, labels, lip).clamp_min(0.0)
        return cross_entropy(logits, labels) - self.gamma * reward
