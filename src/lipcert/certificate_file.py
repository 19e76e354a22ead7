"""What a certificate says, as plain data: proved bounds, and certified accuracies with their counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lipcert.certificate import CertifiedAccuracy, Certifier, Rounding, certified_accuracy
from lipcert.data import Dataset
from lipcert.environment import environment


def describe(
    certifier: Certifier, splits: Mapping[str, Dataset], radii: Sequence[float], rounding: Rounding
) -> dict[str, Any]:
    """Certify every split; the result is ready for JSON."""
    return {
        "format": 1,
        "environment": environment(),
        "rounding": rounding,
        "k_features": certifier.bound.value,
        "k_f": certifier.k_f,
        "layers": [asdict(layer) for layer in certifier.bound.layers],
        "splits": {name: _accuracies(certifier, data, radii, rounding) for name, data in splits.items()},
    }


def _accuracies(
    certifier: Certifier, data: Dataset, radii: Sequence[float], rounding: Rounding
) -> dict[str, Any]:
    certificate = certifier(data.x, rounding)
    clean, *certified = certified_accuracy(certificate, data.y, [0.0, *radii])
    return {"samples": len(data), "clean": _row(clean), "certified": [_row(c) for c in certified]}


def _row(accuracy: CertifiedAccuracy) -> dict[str, Any]:
    return {
        "radius": accuracy.radius,
        "count": accuracy.count,
        "value": accuracy.value,
        "interval": list(accuracy.interval),
    }
