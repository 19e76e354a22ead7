"""Cross-entropy, the baseline without margin and constants."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from lipcert.losses.base import LOSSES, Loss, finite
from lipcert.types import PairLip


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    r"""Return the cross-entropy per sample: (B,).

    $$ -\log \operatorname{softmax}(f)_y $$

    Example:
        >>> import torch
        >>> cross_entropy(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
        tensor([0.6931])
    """
    return F.cross_entropy(finite(logits), labels, reduction="none")


@LOSSES.register("cross-entropy")
@dataclass(frozen=True)
class CrossEntropy(Loss):
    """Train for clean accuracy alone: the baseline, which leaves K free."""

    uses_constants = False

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample: (B,)."""
        return cross_entropy(logits, labels)
