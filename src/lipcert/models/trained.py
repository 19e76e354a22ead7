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
    """The certificate beside a model's weights."""
    statement: dict[str, Any] = json.loads((place / "certificate.json").read_text())
    return statement


def check_unchanged(file: Path, weights: Mapping[str, Tensor]) -> None:
    """Weights beside a certificate are those it speaks of, or nothing is loaded."""
    place = file.parent
    if file.name != "model.safetensors" or not (place / "certificate.json").is_file():
        return
    try:
        claimed = read_statement(place)["model_sha256"]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{place / 'certificate.json'}: cannot be read as a certificate") from None
    if tensors_sha256(weights) != claimed:
        remedy = "install lipcert again" if place.parent == _HOME else "one of the two was replaced"
        raise InputError(f"{place}: the weights are not those of the certificate; {remedy}")
