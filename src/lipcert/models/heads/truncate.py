r"""No weights: the first N features are the logits, as in CPL on CIFAR-10.

Meunier et al. A Dynamical System Perspective for Lipschitz Neural Networks. ICML 2022.

$$ f_i = x_i, \qquad K_{ij} = \sqrt2\, K_{\text{feat}} $$
"""

from __future__ import annotations

import torch
from torch import nn

from lipcert.models.heads.base import HEADS, expect_features
from lipcert.nn import FixedLinear


@HEADS.register("truncate", example={"features": 7, "num_classes": 3})
def truncate(features: int, num_classes: int) -> nn.Module:
    """Take the first features as logits, without weights.

    Example:
        >>> truncate(4, 3)(torch.tensor([[5.0, 6.0, 7.0, 8.0]]))
        tensor([[5., 6., 7.]])
    """
    expect_features("truncate", features, num_classes)
    return FixedLinear(torch.eye(num_classes, features))
