"""The run directory: everything one training leaves behind.

recipe.yaml        resolved: what was run
metrics.jsonl      one object a line
checkpoints/       last.ckpt
model.safetensors  the trained weights
certificate.json   what is proved about them
certified.npz      the same sample by sample: label, prediction, radius, rival
figures/           pictures
tensorboard/       the metrics once more, for TensorBoard
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import yaml

from lipcert.atomic import write_atomically
from lipcert.errors import InputError

_OURS = (
    "recipe.yaml",
    "metrics.jsonl",
    "checkpoints",
    "model.safetensors",
    "certificate.json",
    "certified.npz",
    "tightness.json",
    "figures",
    "tensorboard",
)


# Bytes at the end of metrics.jsonl in which its last line is.
_LINE = 16384


class RunDirectory:
    """Paths of a run, and the rules for starting, resuming and overwriting one."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.recipe = self.path / "recipe.yaml"
        self.metrics = self.path / "metrics.jsonl"
        self.checkpoint = self.path / "checkpoints" / "last.ckpt"
        self.model = self.path / "model.safetensors"
        self.certificate = self.path / "certificate.json"
        self.certified = self.path / "certified.npz"
        self.figures = self.path / "figures"
        self.tensorboard = self.path / "tensorboard"

    def start(self, recipe: dict[str, Any], *, resume: bool, overwrite: bool) -> None:
        """Make the directory ready, or refuse before anything is touched."""
        self.check(recipe, resume=resume, overwrite=overwrite)
        if resume and self.recipe.is_file():
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._clear()
            self.checkpoint.parent.mkdir()
            write_atomically(self.recipe, yaml.safe_dump(recipe, sort_keys=False).encode())
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror})") from None

    def check(self, recipe: dict[str, Any], *, resume: bool, overwrite: bool) -> None:
        """Raise if a run of this recipe cannot start or go on here."""
        if resume and self.recipe.is_file():
            self._check_same(recipe)
        elif self._occupied() and not overwrite:
            hint = "--resume continues it, " if self.recipe.is_file() else ""
            raise InputError(
                f"{self.path}: holds another run or other files; {hint}--overwrite replaces it, "
                "--output chooses another place"
            )

    def holds(self, recipe: dict[str, Any]) -> bool:
        """Whether it is the finished run of exactly this recipe."""
        finished = self.recipe.is_file() and self.certificate.is_file()
        return finished and self._read_recipe() == _to_compare(recipe)

    def _occupied(self) -> bool:
        """A run killed before its recipe was written has at most an empty checkpoints folder."""
        if not self.path.exists():
            return False
        if not self.path.is_dir():
            raise InputError(f"{self.path}: expected a directory, found a file")
        return any(p.name not in ("checkpoints", ".recipe.yaml.part") for p in self.path.iterdir())

    def _clear(self) -> None:
        """Remove what a run writes, and nothing else."""
        for name in _OURS:
            target = self.path / name
            if target.is_dir():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)

    def _check_same(self, recipe: dict[str, Any]) -> None:
        earlier = self._read_recipe()
        if earlier != _to_compare(recipe):
            key = next(iter(_differences(earlier, _to_compare(recipe))), "its form")
            raise InputError(f"{self.path}: cannot resume, the recipe differs in {key}")

    def _read_recipe(self) -> dict[str, Any]:
        return _to_compare(yaml.safe_load(self.recipe.read_text()))

    def rewind_metrics(self, step: int) -> None:
        """Drop the lines beyond `step`, which a resumed training writes again, and a torn last one."""
        if not self.metrics.exists():
            return
        kept = []
        for line in self.metrics.read_text().splitlines(keepends=True):
            if not line.endswith("\n") or json.loads(line)["step"] > step:
                break
            kept.append(line)
        write_atomically(self.metrics, "".join(kept).encode())

    def read_metrics(self) -> list[dict[str, Any]]:
        """Every complete line."""
        if not self.metrics.exists():
            return []
        lines = self.metrics.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def last_metrics(self) -> dict[str, Any] | None:
        """The last complete line, without reading all of them."""
        try:
            with self.metrics.open("rb") as file:
                file.seek(max(self.metrics.stat().st_size - _LINE, 0))
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return None
        found: dict[str, Any] | None = json.loads(lines[-2]) if len(lines) > 1 else None
        return found


def _to_compare(recipe: dict[str, Any]) -> dict[str, Any]:
    """Without the claim, which is words: no figure depends on it."""
    return {key: value for key, value in recipe.items() if key != "claim"}


def _differences(a: Any, b: Any, prefix: str = "") -> list[str]:
    """Dotted keys at which two nested mappings differ."""
    if not (isinstance(a, dict) and isinstance(b, dict)):
        return [] if a == b else [prefix]
    return [
        found
        for key in {**a, **b}
        for found in _differences(a.get(key), b.get(key), f"{prefix}.{key}" if prefix else str(key))
    ]
