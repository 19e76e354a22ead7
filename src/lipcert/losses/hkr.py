"""HKR: a hinge for every class against the rest, and the Kantorovich-Rubinstein distance between them.

Serrurier et al. Achieving Robustness in Classification Using Optimal Transport with Hinge Regularization.
CVPR 2021; multiclass as in deel-torchlip.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lipcert.losses.base import LOSSES, Loss, Number, check_number, off_label
from lipcert.types import PairLip


def hinge_against_rest(logits: Tensor, labels: Tensor, margin: Number) -> Tensor:
    r"""Return the hinge of every class against the rest, per sample: (B,).

    $$ \frac1N \sum_c w_c \max\big(0, \tfrac m2 - s_c f_c\big) $$

    s is 1 for the label and −1 for the rest, w is N − 1 for the label and 1 for the rest.

    Example:
        >>> hinge_against_rest(torch.tensor([[0.3, -1.0, 0.0]]), torch.tensor([0]), margin=1.0)
        tensor([0.3000])
    """
    rest = off_label(logits, labels)
    short = (margin / 2 - torch.where(rest, -logits, logits)).clamp_min(0.0)
    return (torch.where(rest, 1.0, logits.shape[1] - 1.0) * short).mean(dim=1)


def transport(logits: Tensor, labels: Tensor) -> Tensor:
    r"""Return the transport term per sample: (B,).

    $$ \frac1N \sum_c \omega_c f_c, \qquad
       \omega_c = \begin{cases} B/B_c & c = y\\ -B/(B - B_c) & c \ne y \end{cases} $$

    B_c of the B samples have the label c. The mean over the batch is the mean over the classes of how much
    higher a class's logit is on its own samples than on the others. A class that no or every sample has
    counts alone.

    Example:
        >>> transport(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 1]))
        tensor([1., 2.])
    """
    rest = off_label(logits, labels)
    others = rest.to(logits.dtype).sum(dim=0)  # (N,)
    samples = logits.shape[0]
    own = samples - others
    here, there = (samples / count.clamp_min(1.0) for count in (own, others))
    return (torch.where(rest, -there, here) * logits).mean(dim=1)


def summable(logits: Tensor) -> Tensor:
    """Clamp logits to where sums over classes and samples are finite."""
    most = torch.finfo(logits.dtype).max ** 0.75
    return logits.clamp(-most, most)


@LOSSES.register("hkr", example={"alpha": 0.5})
@dataclass(frozen=True)
class HKR(Loss):
    """Combine a hinge and a transport distance per class; for layers whose constant is 1.

    The value is α · hinge − (1 − α) · transport. The transport counts the classes of a batch: the value of
    a sample depends on the labels beside it, so a batch is not divided.
    """

    alpha: Number = 0.99
    margin: Number = 1.0

    uses_constants = False
    shift_invariant = False  # every class is judged separately
    sample_by_sample = False

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, above=0, below=1)
        check_number("margin", self.margin, above=0)

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample: (B,)."""
        logits = summable(logits)
        hinge = hinge_against_rest(logits, labels, self.margin)
        return self.alpha * hinge - (1 - self.alpha) * transport(logits, labels)
