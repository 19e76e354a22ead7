"""Certificates: for every prediction a radius within which no input gets another prediction.

The formula is in radius.py. Its constants are proved, and its margins are, by default, less everything
float64 may have lost on the way to the logits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal

from torch import Tensor

from lipcert.bounds.arguments import checked_tensor
from lipcert.errors import InputError

# The arithmetic whose rounding errors a certificate includes.
Rounding = Literal["float64", "float32", "ignored"]

# The usual evaluation radii of the literature.
RADII = (36 / 255, 72 / 255, 108 / 255)


@dataclass(frozen=True)
class Certificate:
    """Predictions with certified L2 radii; radius 0 means that a prediction is not certified."""

    prediction: Tensor  # (B,); -1 where a logit is not finite
    radius: Tensor  # (B,) float64
    rival: Tensor  # (B,) the class whose boundary limits the radius
    rounding: Rounding
    balls: tuple[float, ...] = ()  # balls on which local bounds were proved, besides the global ones

    def at(self, eps: float) -> Tensor:
        """Return whether no input within `eps` gets another prediction: (B,), strict."""
        if not isinstance(eps, Real | Tensor) or not eps >= 0:
            raise InputError(f"eps: expected a number >= 0, got {eps!r}")
        return self.radius > eps


@dataclass(frozen=True)
class CertifiedAccuracy:
    """The number of samples that are correct and certified at a radius, with a 95 % binomial interval."""

    radius: float
    count: int
    total: int
    interval: tuple[float, float]

    @property
    def value(self) -> float:
        """Return the fraction."""
        return self.count / self.total


def certified_accuracy(
    certificate: Certificate, labels: Tensor, radii: Sequence[float] = RADII
) -> list[CertifiedAccuracy]:
    """Return the certified robust accuracy (CRA) at every radius. Radius 0 gives the clean accuracy.

    Example:
        >>> import torch
        >>> c = Certificate(torch.tensor([0, 1]), torch.tensor([0.5, 0.1]), torch.tensor([1, 0]), "float64")
        >>> [a.value for a in certified_accuracy(c, torch.tensor([0, 1]), radii=[0, 0.2])]
        [1.0, 0.5]
    """
    if checked_tensor("labels", labels).shape != certificate.prediction.shape:
        raise InputError(
            f"labels: expected {len(certificate.prediction)} labels, got shape {tuple(labels.shape)}"
        )
    if len(labels) == 0:
        raise InputError("labels: expected at least one sample")
    if any(not 0 <= r < math.inf for r in radii):
        raise InputError(f"radii: expected numbers >= 0, got {list(radii)}")
    correct = certificate.prediction == labels.cpu()
    counts = [int((correct & (certificate.at(r) if r else correct)).sum()) for r in radii]
    return [
        CertifiedAccuracy(r, count, len(labels), binomial_interval(count, len(labels)))
        for r, count in zip(radii, counts, strict=True)
    ]


def binomial_interval(count: int, total: int) -> tuple[float, float]:
    """Return the 95 % Clopper-Pearson interval: quantiles of two beta distributions."""
    from scipy.special import betaincinv  # takes a tenth of a second to import

    low = betaincinv(count, total - count + 1, 0.025) if count else 0.0
    high = betaincinv(count + 1, total - count, 0.975) if count < total else 1.0
    return float(low), float(high)
