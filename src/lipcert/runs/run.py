"""The run directory: everything one training leaves behind, read and written here alone.

recipe.yaml        resolved: what was run
metrics.jsonl      one object per epoch
checkpoints/       last.ckpt
model.safetensors  the trained weights
certificate.json   what is proved about them
certified.npz      the same sample by sample: label, prediction, radius, rival
tightness.json     how close the proved constant is to a witnessed one
figures/           pictures
tensorboard/       the metrics once more, for TensorBoard
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lipcert.atomic import write_atomically
from lipcert.certificates.certificate import Certificate
from lipcert.certificates.statement import (
    CERTIFICATE,
    Statement,
    TrainedStatement,
    read_trained_certificate,
    write_certificate,
)
from lipcert.data import Dataset
from lipcert.data.base import Split
from lipcert.errors import InputError
from lipcert.runs.metrics import Metrics
from lipcert.runs.samples import Samples, load_samples, save_samples
from lipcert.runs.tightness import Tightness, read_tightness, write_tightness

_OURS = (
    "recipe.yaml",
    "metrics.jsonl",
    "checkpoints",
    "model.safetensors",
    CERTIFICATE,
    "certified.npz",
    "tightness.json",
    "figures",
    "tensorboard",
)


# The end of metrics.jsonl that holds its last line, in bytes.
_LINE = 16384


class Run:
    """The files of a run, and the rules for starting, resuming and overwriting one."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.recipe = self.path / "recipe.yaml"
        self.metrics_file = self.path / "metrics.jsonl"
        self.checkpoint = self.path / "checkpoints" / "last.ckpt"
        self.model = self.path / "model.safetensors"
        self.certificate = self.path / CERTIFICATE
        self.certified = self.path / "certified.npz"
        self.tightness_file = self.path / "tightness.json"
        self.figures = self.path / "figures"
        self.tensorboard = self.path / "tensorboard"

    def start(self, recipe: dict[str, Any], *, resume: bool, overwrite: bool) -> None:
        """Prepare the directory, or raise before anything is changed."""
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
        """Raise if a run of this recipe cannot start or continue here."""
        if resume and self.recipe.is_file():
            self._check_same(recipe)
        elif self._occupied() and not overwrite:
            hint = "--resume continues it, " if self.recipe.is_file() else ""
            raise InputError(
                f"{self.path}: holds another run or other files; {hint}--overwrite replaces it, "
                "--output chooses another place"
            )

    def holds(self, recipe: dict[str, Any]) -> bool:
        """Return whether this is the finished run of exactly this recipe."""
        finished = self.recipe.is_file() and self.certificate.is_file()
        return finished and self._read_recipe() == _to_compare(recipe)

    def _occupied(self) -> bool:
        """Return whether other files are here; a run killed early leaves an empty checkpoints folder."""
        if not self.path.exists():
            return False
        if not self.path.is_dir():
            raise InputError(f"{self.path}: expected a directory, found a file")
        return any(p.name not in ("checkpoints", ".recipe.yaml.part") for p in self.path.iterdir())

    def _clear(self) -> None:
        """Remove the files that a run writes, and nothing else."""
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

    def statement(self) -> TrainedStatement:
        """Return what is proved about the weights."""
        if not self.certificate.is_file():
            raise InputError(f"{self.path}: no {CERTIFICATE} in it (is the run finished?)")
        return read_trained_certificate(self.certificate)

    def save_certificate(
        self, statement: Statement, splits: Mapping[Split, tuple[Dataset, Certificate]]
    ) -> None:
        """Keep what is proved, sample by sample and in all; a run with a statement is finished."""
        save_samples(self.certified, splits)
        write_certificate(self.certificate, statement)

    def samples(self, split: Split) -> Samples:
        """Return the certificates of a split sample by sample."""
        return load_samples(self.certified, split)

    def tightness(self) -> Tightness | None:
        """Return how close the proved constant is to a witnessed one, if it was measured."""
        return read_tightness(self.tightness_file)

    def save_tightness(self, found: Tightness) -> None:
        """Keep what a search has found so far."""
        write_tightness(self.tightness_file, found)

    def rewind_metrics(self, step: int) -> None:
        """Drop the lines beyond `step`, which a resumed training writes again, and a torn last one."""
        if self.metrics_file.exists():
            kept = [metrics.line for metrics in self.metrics() if metrics.step <= step]
            write_atomically(self.metrics_file, "".join(kept).encode())

    def metrics(self) -> list[Metrics]:
        """Return the metrics of every epoch whose line is complete."""
        if not self.metrics_file.exists():
            return []
        lines = self.metrics_file.read_text().splitlines(keepends=True)
        return [self._metrics(line) for line in lines if line.endswith("\n")]

    def last_metrics(self) -> Metrics | None:
        """Return the metrics of the last complete line, without reading all of them."""
        try:
            with self.metrics_file.open("rb") as file:
                file.seek(max(self.metrics_file.stat().st_size - _LINE, 0))
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return None
        return self._metrics(lines[-2].decode()) if len(lines) > 1 else None

    def _metrics(self, line: str) -> Metrics:
        try:
            return Metrics.of(line)
        except ValueError as error:
            raise InputError(f"{self.metrics_file}: cannot be read ({error})") from None


def _to_compare(recipe: dict[str, Any]) -> dict[str, Any]:
    """Return the recipe without the claim, which is text that changes no result."""
    return {key: value for key, value in recipe.items() if key != "claim"}


def _differences(a: Any, b: Any, prefix: str = "") -> list[str]:
    """Return the dotted keys at which two nested mappings differ."""
    if not (isinstance(a, dict) and isinstance(b, dict)):
        return [] if a == b else [prefix]
    return [
        found
        for key in {**a, **b}
        for found in _differences(a.get(key), b.get(key), f"{prefix}.{key}" if prefix else str(key))
    ]
