"""Pretrained models in the package: directories like those of runs, with weights, recipe and certificate."""

from __future__ import annotations

from pathlib import Path

from lipcert.errors import InputError

# The names of the files of weights and recipe in such a directory.
WEIGHTS, RECIPE = "model.safetensors", "recipe.yaml"

_HOME = Path(__file__).parent / "weights"


def trained_models() -> list[str]:
    """Return their names."""
    return sorted(path.name for path in _HOME.iterdir() if (path / WEIGHTS).is_file())


def model_place(source: str | Path) -> Path:
    """Return where the MODEL of an argument is: on disk, else in the package."""
    if not isinstance(source, str | Path):
        kind = type(source).__name__
        raise InputError(f"model: expected a run directory, a file or the name of a model, got {kind}")
    if str(source) == "":
        raise InputError("model: expected a run directory, a file or the name of a model, got ''")
    path = Path(source)
    if not path.exists() and str(source) in trained_models():
        return _HOME / str(source)
    return path


def is_packaged(place: Path) -> bool:
    """Return whether a model's directory belongs to the package."""
    return place.parent == _HOME
