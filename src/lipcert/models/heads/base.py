"""Share the registry of heads: functions that make the last layer from features to logits."""

from __future__ import annotations

from torch import nn

from lipcert.errors import InputError
from lipcert.registry import Registry
from lipcert.suggestions import expected_one_of

HEADS: Registry[nn.Module] = Registry("head", package="lipcert.models.heads")


def make_head(kind: str, features: int, num_classes: int) -> nn.Module:
    """Return the registered head of this name, from `features` numbers to `num_classes` logits."""
    if kind not in list(HEADS):
        raise InputError(f"head: {expected_one_of(HEADS, kind)}")
    return HEADS.create(kind, features=features, num_classes=num_classes)


def expect_features(kind: str, features: int, num_classes: int) -> None:
    """Raise unless there is at least one feature per class, as heads with orthogonal rows need."""
    if features < num_classes:
        raise InputError(
            f"head: {kind} needs at least one feature per class, got {features} features for {num_classes} "
            "classes: make the network wider, or take head linear or lln"
        )
