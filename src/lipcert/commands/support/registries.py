"""The kinds of things that files register: `lipcert list` shows them and a shell completes their names."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from lipcert.registry import Registry, names_in


@dataclass(frozen=True)
class Kind:
    """A registry by where it is, so that its names can be read before it is imported."""

    package: str
    registry: str
    call: str = "register"  # registers what its first argument names

    def names(self) -> list[str]:
        """Read the names from the files of the package, without importing them."""
        return names_in(self.package, self.call)

    def open(self) -> Registry[Any]:
        """Import the registry."""
        registry: Registry[Any] = getattr(importlib.import_module(self.package), self.registry)
        return registry


KINDS = {
    "reproductions": Kind("lipcert.paper", "REPRODUCTIONS", "Reproduction"),
    "losses": Kind("lipcert.losses", "LOSSES"),
    "models": Kind("lipcert.models", "MODELS"),
    "heads": Kind("lipcert.models.heads", "HEADS"),
    "data": Kind("lipcert.data", "DATASETS"),
    "augmentations": Kind("lipcert.data.augmentations", "AUGMENTATIONS"),
    "schedules": Kind("lipcert.train.schedules", "SCHEDULES"),
    "optimizers": Kind("lipcert.train.optimizers", "OPTIMIZERS"),
    "provers": Kind("lipcert.bounds.provers.convolutions", "PROVERS"),
    "attacks": Kind("lipcert.attack", "ATTACKS"),
}
