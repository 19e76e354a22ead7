"""The last layer of a network: free, as in CLL, or with rows of length 1."""

from __future__ import annotations

from torch import nn

from lipcert.errors import InputError
from lipcert.nn import LLNLinear

HEADS = ("linear", "lln")


def make_head(kind: str, features: int, num_classes: int) -> nn.Module:
    """Return a dense layer with `num_classes` rows."""
    if kind not in HEADS:
        raise InputError(f"head: expected one of {', '.join(HEADS)}, got {kind!r}")
    return nn.Linear(features, num_classes) if kind == "linear" else LLNLinear(features, num_classes)
