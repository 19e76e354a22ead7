"""LMT: Lipschitz-margin training raises every rival by its possible gain within eps.

Tsuzuku, Sato, Sugiyama. Lipschitz-Margin Training. NeurIPS 2018. This is its pairwise form; the original
raises all rivals by √2 eps times the bound of the features and the norm of the head, which is looser.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lipcert.losses.base import LOSSES, Loss, Number, check_number
from lipcert.losses.softmax import cross_entropy
from lipcert.types import PairLip


def lmt_logits(logits: Tensor, labels: Tensor, lip: PairLip, eps: Number) -> Tensor:
    r"""Raise every rival by its possible gain within eps: (B, N).

    $$ f_i + \varepsilon K_{iy} $$

    Example:
        >>> import torch
        >>> lip = PairLip(features=torch.tensor(1.0), head=torch.tensor([[1.0], [0.0]]))
        >>> lmt_logits(torch.tensor([[3.0, 1.0]]), torch.tensor([0]), lip, eps=0.5)
        tensor([[3.0000, 1.5000]])
    """
    return logits + eps * lip.rows(labels)  # K_yy = 0


@LOSSES.register("lmt", example={"eps": 0.1})
@dataclass(frozen=True)
class LMT(Loss):
    r"""Raise every rival by εK in the cross-entropy, whose gradient keeps K small; it is not calibrated.

    $$ \mathrm{CE}(f + \varepsilon K_{\cdot y},\ y) $$
    """

    eps: Number

    def __post_init__(self) -> None:
        check_number("eps", self.eps, above=0)

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample: (B,)."""
        return cross_entropy(lmt_logits(logits, labels, lip, self.eps), labels)
