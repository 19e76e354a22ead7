"""KR: the Kantorovich-Rubinstein distance between every class and the rest, without a hinge.

Serrurier et al. Achieving Robustness in Classification Using Optimal Transport with Hinge Regularization.
CVPR 2021; multiclass as in deel-torchlip.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lipcert.losses.base import LOSSES, Loss
from lipcert.losses.hkr import summable, transport
from lipcert.types import PairLip


@LOSSES.register("kr")
@dataclass(frozen=True)
class KR(Loss):
    """Maximise the transport distance of every class from the rest; for layers whose constant is 1.

    The value is the negative of `transport`, which counts the classes of a batch: a batch is not divided.
    """

    uses_constants = False
    shift_invariant = False  # every class is judged separately
    sample_by_sample = False

    def values(self, logits: Tensor, labels: Tensor, lip: PairLip) -> Tensor:
        """Return one value per sample: (B,)."""
        return -transport(summable(logits), labels)
