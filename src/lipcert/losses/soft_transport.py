"""Soft HKR: the hinge and the transport of the label against a softmax of its rivals.

Serrurier, Mamalet, Fel, Béthune, Boissin. On the Explainable Properties of 1-Lipschitz Neural Networks: An
Optimal Transport Perspective. NeurIPS 2023; as in deel-torchlip.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.losses.base import LOSSES, Loss, Number, check_number, off_label
from lipcert.losses.hkr import summable
from lipcert.types import PairLip

# The limits of deel-torchlip: of the mean size of logits, and of the factor of the softmax.
_LARGEST_MEAN, _FACTORS = 20000.0, (0.005, 250.0)


def soft_hkr(
    logits: Tensor,
    labels: Tensor,
    alpha: Number,
    margin: Number,
    temperature: Number,
    mean: Tensor | None = None,
) -> Tensor:
    r"""Return the value per sample: (B,).

    $$ \sum_c p_c \Big(\alpha \max\big(0, \tfrac m2 - s_c f_c\big) - (1 - \alpha)\, s_c f_c\Big), \qquad
       p_y = 1, \quad p_{c \ne y} = \operatorname{softmax}(\tau f)_{c \ne y}, \quad
       \tau = \frac{T m}{\max(m, \mu)} $$

    s is 1 for the label and −1 for its rivals, μ the `mean` of |f|: that of the batch, unless given. No
    gradient passes τ.

    Example:
        >>> soft_hkr(torch.tensor([[1.0, 0.0]]), torch.tensor([0]), alpha=0.5, margin=1.0, temperature=1.0)
        tensor([-0.2500])
    """
    rest = off_label(logits, labels)
    if mean is None:
        mean = logits.abs().sum() / max(1, logits.numel())
    size = mean.clamp_min(margin).clamp_max(_LARGEST_MEAN)
    factor = (temperature * margin / size).clamp(*_FACTORS).detach()
    # Differences from the largest rival, because a product with a factor above 1 could overflow.
    rivals = logits.masked_fill(~rest, -torch.inf)
    rivals = rivals - rivals.amax(dim=1, keepdim=True)
    shares = torch.where(rest, (factor * rivals).softmax(dim=1), 1.0)
    signed = torch.where(rest, -logits, logits)
    short = (margin / 2 - signed).clamp_min(0.0)
    return (shares * (alpha * short - (1 - alpha) * signed)).sum(dim=1)


@LOSSES.register("soft-hkr", example={"alpha": 0.5, "margin": 0.1})
@dataclass(frozen=True)
class SoftHKR(Loss):
    """Combine the hinge and the transport of the label against its strongest rivals; for constants of 1.

    deel-torchlip follows μ by a running mean from batch to batch. A loss here has no memory: μ is the mean of
    the batch, as theirs with `alpha_mean=0`, so a batch is not divided.
    """

    alpha: Number = 0.9
    margin: Number = 1.0
    temperature: Number = 1.0

    uses_constants = False
    shift_invariant = False  # logits are compared with 0
    sample_by_sample = False
    exact_gradient = False  # none passes τ

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, above=0, below=1)
        check_number("margin", self.margin, above=0)
        check_number("temperature", self.temperature, above=0)

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample: (B,)."""
        return soft_hkr(summable(logits), labels, self.alpha, self.margin, self.temperature)
