"""GloRo with TRADES: cross-entropy, with the likelihood of the extra class as a weighted regulariser.

Leino, Wang, Fredrikson. Globally-Robust Neural Networks. ICML 2021; after Zhang et al., Theoretically
Principled Trade-off between Robustness and Accuracy, ICML 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from lipcert.losses.base import LOSSES, Loss, Number, check_number
from lipcert.losses.gloro import gloro_logits
from lipcert.losses.softmax import cross_entropy
from lipcert.types import PairLip


@LOSSES.register("gloro-trades", example={"eps": 0.1, "mu": 2.0})
@dataclass(frozen=True)
class GloRoTrades(Loss):
    r"""Weigh the loss that GloRo's extra class adds by μ; its gradient keeps K small.

    $$ \mathrm{CE}(f, y) + \mu R, \qquad R = \mathrm{softplus}(f_\bot - \log\textstyle\sum_i e^{f_i}) $$

    GloRo itself is μ = 1. `form="added"` weighs R with 1 + μ, as the authors of CLL train it.
    """

    eps: Number
    mu: Number = 1.0
    form: Literal["original", "added"] = "original"

    def __post_init__(self) -> None:
        check_number("eps", self.eps, above=0)
        check_number("mu", self.mu, above=0)

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample: (B,)."""
        bottom = gloro_logits(logits, lip, self.eps)[:, -1]
        # softplus(x), which torch itself rounds differently at the end of a vector.
        regulariser = -F.logsigmoid(logits.logsumexp(dim=1) - bottom)
        weight = self.mu if self.form == "original" else 1 + self.mu
        return cross_entropy(logits, labels) + weight * regulariser
