"""Activations allowed inside residual and sandwich layers: elementwise, with slopes in [0, 1].

The proofs of those layers write the difference of two activations as D(u − v) with a diagonal D between 0 and
1. MinMax has no such D, and inside such a layer MinMax can stretch distances.
"""

from __future__ import annotations

from torch import nn

from lipcert.bounds.contract import plain_type
from lipcert.errors import InputError

EXACT = (nn.ReLU, nn.ReLU6, nn.Hardtanh)  # no rounding
_ROUNDED = (nn.Tanh, nn.Sigmoid)


def require_elementwise(activation: nn.Module, layer: str) -> None:
    """Raise unless the activation is one of those listed above."""
    kind = plain_type(activation)
    if kind not in (*EXACT, *_ROUNDED):
        names = ", ".join(k.__name__ for k in (*EXACT, *_ROUNDED))
        raise InputError(
            f"activation: {layer} needs an elementwise activation with slopes in [0, 1] ({names}), "
            f"got {kind.__name__}; put others between layers"
        )
