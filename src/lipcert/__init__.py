"""lipcert: classifiers with deterministic, proved L2 robustness certificates.

The names below load on first use, so that `lipcert --help` does not wait for torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from lipcert import bounds, data, losses, models, nn
    from lipcert.bounds import Bounded, UnknownBoundError, upper
    from lipcert.certificates.certificate import Certificate, certified_accuracy
    from lipcert.certificates.certifier import Certifier, certifier, certify
    from lipcert.certificates.loading import load
    from lipcert.errors import DisagreementError, InputError, LipcertError, StaleBoundError
    from lipcert.estimator import CertifiedClassifier
    from lipcert.types import PairLip

_HOME = {
    "Bounded": "lipcert.bounds",
    "upper": "lipcert.bounds",
    "UnknownBoundError": "lipcert.errors",
    "Certificate": "lipcert.certificates.certificate",
    "CertifiedClassifier": "lipcert.estimator",
    "Certifier": "lipcert.certificates.certifier",
    "certified_accuracy": "lipcert.certificates.certificate",
    "certifier": "lipcert.certificates.certifier",
    "certify": "lipcert.certificates.certifier",
    "load": "lipcert.certificates.loading",
    "DisagreementError": "lipcert.errors",
    "InputError": "lipcert.errors",
    "LipcertError": "lipcert.errors",
    "PairLip": "lipcert.types",
    "StaleBoundError": "lipcert.errors",
}
_SUBPACKAGES = ("bounds", "data", "losses", "models", "nn")

__all__ = [
    "Bounded",
    "Certificate",
    "CertifiedClassifier",
    "Certifier",
    "DisagreementError",
    "InputError",
    "LipcertError",
    "PairLip",
    "StaleBoundError",
    "UnknownBoundError",
    "__version__",
    "bounds",
    "certified_accuracy",
    "certifier",
    "certify",
    "data",
    "load",
    "losses",
    "models",
    "nn",
    "upper",
]


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"lipcert.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'lipcert' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
