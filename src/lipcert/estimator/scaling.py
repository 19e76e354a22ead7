"""Features brought to one scale, and radii brought back from it.

Distances are measured after scaling: in standard deviations, or in the features' own units, which then share
one divisor so that a network finds numbers near 1 whatever the units are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lipcert.bounds.provers.rounding import TINY, U
from lipcert.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scaling:
    """x ↦ (x − mean)/spread, for distances that are `unit` times as long before it."""

    mean: Floats  # (D,)
    spread: Floats  # (D,); infinite for a feature that is constant in training: it is ignored
    unit: float

    @classmethod
    def of(cls, X: Floats, standardise: bool) -> Scaling:
        """From the training samples (B, D)."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean, deviation = X.mean(axis=0), X.std(axis=0)
        if not np.isfinite(deviation).all():
            raise InputError(f"X: expected numbers whose squares are finite, got up to {abs(X).max():.3g}")
        # A feature that training never moves keeps the weights it was drawn with, which would cost radius for
        # nothing. The mean of equal numbers may differ from them by a few roundings.
        varies = deviation > 4 * len(X) * U * abs(mean)
        typical = float(deviation[varies].mean()) if varies.any() else 1.0
        spread = np.where(varies, deviation if standardise else typical, np.inf)
        return cls(mean, spread, 1.0 if standardise else typical)

    def __call__(self, X: Floats) -> Floats:
        """As the network takes them: (B, D)."""
        with np.errstate(over="ignore"):  # refused by name just below
            z: Floats = (X - self.mean) / self.spread
        if not np.isfinite(z).all():
            raise InputError(
                f"X: too far from the training samples for float64, got up to {abs(X).max():.3g}"
            )
        return z

    def radius(self, radius: Floats, z: Floats) -> Floats:
        """Radii (B,) around scaled samples z as radii around the samples themselves, rounded down."""
        # A difference and a quotient: z is off by at most 2u|z|, and so is whatever lies within the radius.
        lost = 8 * U * (np.linalg.norm(z, axis=1) + radius) + z.shape[1] * TINY
        with np.errstate(invalid="ignore"):  # ∞ − ∞
            kept = np.maximum(radius - lost, 0.0) * self.unit
        return np.where(np.isinf(radius), radius, np.nextafter(kept, 0.0))
