"""EMMA raises every rival by its possible gain within eps, but no higher than the label's own logit.

Hu, Zou, Wang, Leino, Fredrikson. Unlocking Deterministic Robustness Certification on ImageNet. NeurIPS 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.losses.base import LOSSES, Loss, Number, check_number, finite, off_label
from lipcert.losses.softmax import cross_entropy
from lipcert.types import PairLip

_LEAST = 0.01


def emma_logits(logits: Tensor, labels: Tensor, lip: PairLip, eps: Number) -> Tensor:
    r"""Raise rivals by as much of eps as they need to win, at most all of it: (B, N).

    $$ f_j + \rho_j\,\varepsilon K_{jy}, \qquad
       \rho_j = \operatorname{clip}\Big(\frac{f_y - f_j}{\varepsilon K_{jy}},\ 0.01,\ 1\Big) $$

    ρ carries no gradient, K does.

    Example:
        >>> lip = PairLip(features=torch.tensor(1.0), head=torch.tensor([[1.0], [0.0]]))
        >>> emma_logits(torch.tensor([[3.0, 1.0], [1.2, 1.0]]), torch.tensor([0, 0]), lip, eps=0.5)
        tensor([[3.0000, 1.5000],
                [1.2000, 1.2000]])
    """
    logits = finite(logits)
    reach = eps * lip.rows(labels)  # (B, N), 0 for the label
    short = (logits.gather(1, labels[:, None]) - logits).detach()
    part = (short / reach.detach().clamp_min(torch.finfo(logits.dtype).tiny)).clamp(_LEAST, 1.0)
    return logits + torch.where(off_label(logits, labels), part, 0.0) * reach


@LOSSES.register("emma", example={"eps": 0.1})
@dataclass(frozen=True)
class EMMA(Loss):
    r"""Raise every rival by εK, at most to the label's logit; the gradient keeps K small.

    $$ \mathrm{CE}(f + \rho\,\varepsilon K_{\cdot y},\ y) $$
    """

    eps: Number

    exact_gradient = False  # none passes ρ

    def __post_init__(self) -> None:
        check_number("eps", self.eps, above=0)

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample: (B,)."""
        return cross_entropy(emma_logits(logits, labels, lip, self.eps), labels)
