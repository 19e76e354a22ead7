r"""A head whose rows are orthonormalised by Björck's iteration.

Anil, Lucas, Grosse. Sorting Out Lipschitz Function Approximation. ICML 2019.

$$ f_i = w_i \cdot x + b_i, \qquad w_i \cdot w_j = \delta_{ij}, \qquad K_{ij} = \sqrt2\, K_{\text{feat}} $$
"""

from __future__ import annotations

from torch import nn

from lipcert.models.heads.base import HEADS, expect_features
from lipcert.nn import BjorckLinear


@HEADS.register("bjorck", example={"features": 7, "num_classes": 3})
def bjorck(features: int, num_classes: int) -> nn.Module:
    """Make a Björck dense layer with bias; its rows are orthonormal."""
    expect_features("bjorck", features, num_classes)
    return BjorckLinear(features, num_classes)
