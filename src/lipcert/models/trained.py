"""Models that come with the package: directories like those of runs, with weights, recipe and certificate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from lipcert.errors import InputError
from lipcert.hashing import tensors_sha256

_HOME = Path(__file__).parent / "weights"


def trained_models() -> list[str]:
    """Their names."""
    return sorted(path.name for path in _HOME.iterdir() if (path / "model.safetensors").is_file())


def model_place(source: str | Path) -> Path:
    """Where the MODEL of an argument is: on disk, else in the package."""
    path = Path(source)
    if not path.exists() and str(source) in trained_models():
        return _HOME / str(source)
    return path


def read_statement(place: Path) -> dict[str, Any]:
    """The certificate beside a packaged model's weights."""
    statement: dict[str, Any] = json.loads((place / "certificate.json").read_text())
    return statement


def check_unchanged(place: Path, weights: Mapping[str, Tensor]) -> None:
    """Weights that came with the package are those of their certificate, or nothing is loaded."""
    if place.parent == _HOME and tensors_sha256(weights) != read_statement(place)["model_sha256"]:
        raise InputError(f"{place}: the weights are not those of the certificate; install lipcert again")
