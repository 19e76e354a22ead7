"""Cross-entropy with a temperature, as deel-torchlip has it for layers whose constant is 1.

Béthune, Boissin, Serrurier, Mamalet, Friedrich, González Sanz. Pay Attention to Your Loss: Understanding
Misconceptions about 1-Lipschitz Neural Networks. NeurIPS 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lipcert.losses.base import LOSSES, Loss, Number, check_number
from lipcert.losses.softmax import cross_entropy
from lipcert.types import PairLip


def temperature_cross_entropy(logits: Tensor, labels: Tensor, tau: Number) -> Tensor:
    r"""Return the cross-entropy of τf, divided by τ, per sample: (B,).

    $$ \tfrac1\tau\, CE(\tau f, y) $$

    Example:
        >>> import torch
        >>> temperature_cross_entropy(torch.tensor([[0.0, 0.0]]), torch.tensor([0]), tau=2.0)  # ½ log 2
        tensor([0.3466])
    """
    return cross_entropy(tau * logits, labels) / tau


@LOSSES.register("temperature-cross-entropy", example={"tau": 10.0})
@dataclass(frozen=True)
class TemperatureCrossEntropy(Loss):
    """Multiply logits by τ in the cross-entropy: a large τ asks for accuracy, a small one for margins."""

    tau: Number

    uses_constants = False

    def __post_init__(self) -> None:
        check_number("tau", self.tau, above=0)

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample: (B,)."""
        return temperature_cross_entropy(logits, labels, self.tau)

    def whole_lipschitz(self, k_f: float) -> float:
        """Return τK_f."""
        return k_f * float(self.tau)
