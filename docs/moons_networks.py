"""Train small networks on two moons for pictures: the playground's short training, some seconds each."""

from __future__ import annotations

from lipcert.explore.playground import CROSS_ENTROPY, Wish, train
from lipcert.report.moons_figure import Picture

# Epochs of the short training; the recipes of two moons have 1000.
EPOCHS = 80


def with_slack(slack: float) -> Picture:
    """Train CLL at ε = 0.15 with a slack that stays the same."""
    return _last(Wish(slack=slack))


def with_cross_entropy() -> Picture:
    """Train the same network with cross-entropy alone."""
    return _last(Wish(loss=CROSS_ENTROPY))


def _last(wish: Wish) -> Picture:
    *_, frame = train(wish)
    return frame.picture
