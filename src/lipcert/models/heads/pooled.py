r"""No weights: a logit is √k times the mean of k features of its own, as in SLL on CIFAR-10.

Araujo et al. A Unified Algebraic Perspective on Lipschitz Neural Networks. ICLR 2023.

$$ f_i = \frac{1}{\sqrt k} \sum_{l=1}^{k} x_{ik+l}, \qquad K_{ij} = \sqrt2\, K_{\text{feat}} $$

for N classes and D features, with k = ⌊D/N⌋ and i from 0 to N − 1. The last D − kN features are dropped.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from lipcert.models.heads.base import HEADS, expect_features
from lipcert.nn import FixedLinear


@HEADS.register("pooled", example={"features": 7, "num_classes": 3})
def pooled(features: int, num_classes: int) -> nn.Module:
    """Average equally many features per class, times the root of their number, without weights.

    Example:
        >>> pooled(9, 2)(torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]]))
        tensor([[ 5., 13.]])
    """
    expect_features("pooled", features, num_classes)
    k = features // num_classes
    groups = torch.eye(num_classes).repeat_interleave(k, dim=1) / math.sqrt(k)
    return FixedLinear(F.pad(groups, (0, features - k * num_classes)))
