r"""An orthogonal head: its rows are N rows of the exponential of a skew-symmetric matrix, as in SOC.

Singla, Feizi. Skew Orthogonal Convolutions. ICML 2021. A 1×1 convolution on one pixel is a dense layer.

$$ f_i = w_i \cdot x + b_i, \qquad w_i = e_i^T \exp(M - M^T), \qquad K_{ij} = \sqrt2\, K_{\text{feat}} $$
"""

from __future__ import annotations

from torch import nn

from lipcert.models.heads.base import HEADS, expect_features
from lipcert.nn import SOCLinear


@HEADS.register("orthogonal", example={"features": 7, "num_classes": 3})
def orthogonal(features: int, num_classes: int) -> nn.Module:
    """Make a skew orthogonal dense layer with bias; its rows are orthonormal."""
    expect_features("orthogonal", features, num_classes)
    return SOCLinear(features, num_classes)
