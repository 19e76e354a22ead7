r"""Last-layer normalisation: every row has length 1.

Singla, Singla, Feizi. Improved Deterministic l2 Robustness on CIFAR-10 and CIFAR-100. ICLR 2022.

$$ f_i = \frac{w_i}{\|w_i\|} \cdot x + b_i, \qquad K_{ij} \le 2 K_{\text{feat}} $$
"""

from __future__ import annotations

from torch import nn

from lipcert.models.heads.base import HEADS
from lipcert.nn import LLNLinear


@HEADS.register("lln", example={"features": 6, "num_classes": 3})
def lln(features: int, num_classes: int) -> nn.Module:
    """Make a dense layer with bias whose rows have length 1."""
    return LLNLinear(features, num_classes)
