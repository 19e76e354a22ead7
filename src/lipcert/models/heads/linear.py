r"""The free head, which CLL takes: nothing constrains its rows, the loss sees their distances.

$$ f_i = w_i \cdot x + b_i, \qquad K_{ij} = K_{\text{feat}} \|w_i - w_j\| $$
"""

from __future__ import annotations

from torch import nn

from lipcert.models.heads.base import HEADS


@HEADS.register("linear", example={"features": 6, "num_classes": 3})
def linear(features: int, num_classes: int) -> nn.Module:
    """Make a free dense layer with bias."""
    return nn.Linear(features, num_classes)
