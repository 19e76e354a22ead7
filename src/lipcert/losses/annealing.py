"""Logit annealing: an offset cross-entropy that gives less weight to samples it is sure of.

Lai, Luo, Hsu. Enhancing Certified Robustness via Block Reflector Orthogonal Layers and Logit Annealing Loss.
ICML 2025.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.losses.aol import offset_cross_entropy
from lipcert.losses.base import LOSSES, Loss, Number, check_number
from lipcert.losses.emma import emma_logits
from lipcert.types import PairLip


def logit_annealing(
    logits: Tensor, labels: Tensor, offset: Number, temperature: Number, power: Number
) -> Tensor:
    r"""Return the annealed cross-entropy per sample: (B,).

    $$ -T (1-q)^\beta \log q, \qquad q = \operatorname{softmax}\big((f - \xi\,e_y)/T\big)_y $$

    Example:
        >>> f, y = torch.tensor([[0.0, 0.0]]), torch.tensor([0])
        >>> logit_annealing(f, y, offset=0.0, temperature=1.0, power=1.0)  # ½ log 2
        tensor([0.3466])
    """
    values = offset_cross_entropy(logits, labels, offset, temperature)  # −T log q
    doubt = -torch.expm1(-values / temperature)  # 1 − q
    # The derivative of a power below 1 has a pole at 0. Torch rounds powers differently at the end of a
    # vector; with exponential and logarithm a value does not depend on the sample's place in the batch.
    size = doubt.clamp_min(torch.finfo(logits.dtype).tiny).log()
    return values * torch.exp(power * size)


@LOSSES.register("logit-annealing")
@dataclass(frozen=True)
class LogitAnnealing(Loss):
    """Require an offset, and give sure samples less weight; for layers whose constant is 1."""

    offset: Number = 2.0
    temperature: Number = 0.75
    power: Number = 5.0

    uses_constants = False

    def __post_init__(self) -> None:
        check_number("offset", self.offset, above=0, or_equal=True)
        check_number("temperature", self.temperature, above=0)
        check_number("power", self.power, above=0)

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample: (B,)."""
        return logit_annealing(logits, labels, self.offset, self.temperature, self.power)

    def whole_lipschitz(self, k_f: float) -> float:
        """Return K_f/T."""
        return k_f / float(self.temperature)


@LOSSES.register("emma-annealing", example={"eps": 0.1})
@dataclass(frozen=True)
class EMMAAnnealing(Loss):
    """Apply logit annealing to the logits of EMMA, as BRONet does; the gradient keeps K small."""

    eps: Number
    offset: Number = 2.0
    temperature: Number = 0.75
    power: Number = 5.0

    exact_gradient = False  # none passes the ρ of EMMA

    def __post_init__(self) -> None:
        check_number("eps", self.eps, above=0)
        LogitAnnealing(self.offset, self.temperature, self.power)

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample: (B,)."""
        raised = emma_logits(logits, labels, lip, self.eps)
        return logit_annealing(raised, labels, self.offset, self.temperature, self.power)

    def whole_lipschitz(self, k_f: float) -> float:
        """Return K_f/T."""
        return k_f / float(self.temperature)
