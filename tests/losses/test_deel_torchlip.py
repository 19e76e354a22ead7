"""Losses against deel-torchlip's own, at equal inputs; skipped, and said so, where the package is absent."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lipcert import PairLip
from lipcert.losses import HKR, KR, Loss, SoftHKR, TemperatureCrossEntropy, soft_hkr

peer: Any = pytest.importorskip("deel.torchlip", reason="needs `pip install deel-torchlip` to compare losses")


def batches() -> list[tuple[Tensor, Tensor]]:
    """Logits of several sizes, with labels; one class has no sample."""
    torch.manual_seed(0)
    return [(size * torch.randn(32, 7), torch.randint(6, (32,))) for size in (0.1, 1.0, 30.0)]


def mine(loss: Loss, logits: Tensor, labels: Tensor) -> Tensor:
    return loss(logits, labels, PairLip(torch.ones(()), torch.eye(logits.shape[1])))


def pairs() -> dict[str, tuple[Loss, Any]]:
    """Losses of lipcert and of deel-torchlip."""
    return {
        "kr": (KR(), lambda f, y: -peer.KRMulticlassLoss(reduction="none")(f, y)),
        "hkr": (HKR(alpha=0.8, margin=0.7), peer.HKRMulticlassLoss(0.8, 0.7, reduction="none")),
        "soft-hkr": (
            SoftHKR(alpha=0.8, margin=0.7, temperature=3.0),
            peer.SoftHKRMulticlassLoss(0.8, 0.7, alpha_mean=0.0, temperature=3.0, reduction="none"),
        ),
    }


@pytest.mark.parametrize("name", ["kr", "hkr", "soft-hkr"])
def test_values_and_gradients_are_theirs(name: str) -> None:
    own, theirs = pairs()[name]
    for logits, labels in batches():
        f, g = logits.clone().requires_grad_(), logits.clone().requires_grad_()
        values, expected = mine(own, f, labels), theirs(g, F.one_hot(labels, 7).float())
        torch.testing.assert_close(values, expected, rtol=1e-5, atol=1e-6)
        values.mean().backward()
        expected.mean().backward()
        torch.testing.assert_close(f.grad, g.grad, rtol=1e-4, atol=1e-7)


def test_their_running_mean_is_an_argument() -> None:
    theirs = peer.SoftHKRMulticlassLoss(0.9, 0.5, alpha_mean=0.99, reduction="none")
    mean = torch.tensor(0.5)  # it begins at the margin
    for logits, labels in batches():
        mean = 0.99 * mean + 0.01 * logits.abs().mean()
        own = soft_hkr(logits, labels, 0.9, 0.5, 1.0, mean)
        torch.testing.assert_close(own, theirs(logits, F.one_hot(labels, 7).float()), rtol=1e-5, atol=1e-6)


def test_the_temperature_is_theirs() -> None:
    for logits, labels in batches():
        expected = peer.TauCrossEntropyLoss(5.0, reduction="none")(logits, labels)
        torch.testing.assert_close(mine(TemperatureCrossEntropy(5.0), logits, labels), expected)
