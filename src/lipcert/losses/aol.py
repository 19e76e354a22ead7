"""The loss of AOL: cross-entropy that lowers the label's logit by an offset, with a temperature.

Prach, Lampert. Almost-Orthogonal Layers for Efficient General-Purpose Lipschitz Networks. ECCV 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.losses.base import LOSSES, Loss, Number, check_number, off_label
from lipcert.losses.softmax import cross_entropy
from lipcert.types import PairLip


def offset_cross_entropy(logits: Tensor, labels: Tensor, offset: Number, temperature: Number) -> Tensor:
    r"""Return the cross-entropy with an offset u and a temperature T per sample: (B,).

    $$ T \cdot CE\big((f - u\,e_y)/T,\ y\big) $$

    Example:
        >>> offset_cross_entropy(torch.tensor([[1.0, 0.0]]), torch.tensor([0]), offset=1.0, temperature=0.25)
        tensor([0.1733])
    """
    lowered = torch.where(off_label(logits, labels), logits, logits - offset)
    return temperature * cross_entropy(lowered / temperature, labels)


@LOSSES.register("aol")
@dataclass(frozen=True)
class AOL(Loss):
    """Require an offset of the logits, with a temperature; for layers whose constant is 1.

    There u = √2 aims at a radius of 1.
    """

    offset: Number = 2**0.5
    temperature: Number = 0.25

    uses_constants = False

    def __post_init__(self) -> None:
        check_number("offset", self.offset, above=0)
        check_number("temperature", self.temperature, above=0)

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample: (B,)."""
        return offset_cross_entropy(logits, labels, self.offset, self.temperature)

    def whole_lipschitz(self, k_f: float) -> float:
        """Return K_f/T."""
        return k_f / float(self.temperature)
