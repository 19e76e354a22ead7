"""Scale features, and convert radii back.

Distances are measured after scaling: in standard deviations, or in the features' own units, which then share
one divisor so that the network sees numbers near 1 in any units.
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
    """The map x ↦ (x − mean)/spread; distances before it are `unit` times as long."""

    mean: Floats  # (D,)
    spread: Floats  # (D,); infinite for a feature that is constant in training, and so ignored
    unit: float

    @classmethod
    def of(cls, X: Floats, standardise: bool) -> Scaling:
        """Compute the scaling from the training samples (B, D)."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean, deviation = X.mean(axis=0), X.std(axis=0)
        if not np.isfinite(deviation).all():
            raise InputError(f"X: expected numbers whose squares are finite, got up to {abs(X).max():.3g}")
        # A feature that is constant in training keeps its initial random weights, which would reduce radii
        # for nothing. The mean of equal numbers may differ from them by a few rounding errors.
        varies = deviation > 4 * len(X) * U * abs(mean)
        typical = float(deviation[varies].mean()) if varies.any() else 1.0
        spread = np.where(varies, deviation if standardise else typical, np.inf)
        return cls(mean, spread, 1.0 if standardise else typical)

    def __call__(self, X: Floats) -> Floats:
        """Return the samples as network inputs: (B, D)."""
        with np.errstate(over="ignore"):  # refused just below
            z: Floats = (X - self.mean) / self.spread
        if not np.isfinite(z).all():
            raise InputError(
                f"X: too far from the training samples for float64, got up to {abs(X).max():.3g}"
            )
        return z

    def radius(self, radius: Floats, z: Floats) -> Floats:
        """Convert radii (B,) around scaled samples z to radii around the original samples, rounded down."""
        # A difference and a quotient: z is off by at most 2u|z|, and so is every point within the radius.
        lost = 8 * U * (np.linalg.norm(z, axis=1) + radius) + z.shape[1] * TINY
        with np.errstate(invalid="ignore"):  # ∞ − ∞
            kept = np.maximum(radius - lost, 0.0) * self.unit
        return np.where(np.isinf(radius), radius, np.nextafter(kept, 0.0))
