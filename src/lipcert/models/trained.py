"""Pretrained models in the package: directories like those of runs, with weights, recipe and certificate."""

from __future__ import annotations

from pathlib import Path

# The names of the files of such a directory.
WEIGHTS, RECIPE, CERTIFICATE = "model.safetensors", "recipe.yaml", "certificate.json"

_HOME = Path(__file__).parent / "weights"


def trained_models() -> list[str]:
    """Return their names."""
    return sorted(path.name for path in _HOME.iterdir() if (path / WEIGHTS).is_file())


def trained_place(name: str) -> Path:
    """Return the directory of a pretrained model."""
    return _HOME / name


def is_packaged(place: Path) -> bool:
    """Return whether a model's directory belongs to the package."""
    return place.parent == _HOME
