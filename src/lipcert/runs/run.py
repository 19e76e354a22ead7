"""The run directory: everything one training leaves behind, read and written here alone.

recipe.yaml        resolved: what was run
metrics.jsonl      one object per epoch
checkpoints/       last.ckpt
model.safetensors  the trained weights
certificate.json   what is proved about them
certificate-*.json what `lipcert certify` found later, by split
certified.npz      the same sample by sample: label, prediction, radius, rival
tightness.json     how close the proved constant is to a witnessed one
figures/           pictures
tensorboard/       the metrics once more, for TensorBoard
.lock              only while a process trains here: which one
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import yaml
from torch import nn

from lipcert.atomic import check_folder_place, is_unfinished, made_folder, write_atomically, writing
from lipcert.certificates.certificate import Certificate
from lipcert.certificates.statement import (
    Statement,
    TrainedStatement,
    read_trained_certificate,
    write_certificate,
)
from lipcert.data import Dataset
from lipcert.data.base import Split
from lipcert.errors import InputError
from lipcert.models import ModelCard, save
from lipcert.models.trained import CERTIFICATE, RECIPE, WEIGHTS
from lipcert.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from lipcert.runs.metrics import Metrics
from lipcert.runs.metrics_log import MetricsLog
from lipcert.runs.run_lock import NAME as LOCK
from lipcert.runs.run_lock import exclusive
from lipcert.runs.run_paths import absolute, restored, stored
from lipcert.runs.samples import Samples, load_samples, save_samples
from lipcert.runs.tightness import Tightness, read_tightness, write_tightness

# The end of metrics.jsonl that holds its last line, in bytes.
_LINE = 16384


class Run:
    """The files of a run, and the rules for starting, resuming and overwriting one."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.recipe = self.path / RECIPE
        self.metrics_file = self.path / "metrics.jsonl"
        self.checkpoint = self.path / "checkpoints" / "last.ckpt"
        self.model = self.path / WEIGHTS
        self.certificate = self.path / CERTIFICATE
        self.certified = self.path / "certified.npz"
        self.tightness_file = self.path / "tightness.json"
        self.figures = self.path / "figures"
        self.tensorboard = self.path / "tensorboard"
        self._statement: tuple[tuple[int, ...], TrainedStatement] | None = (
            None  # with the version of the file
        )

    @contextlib.contextmanager
    def opened(self, recipe: dict[str, Any], *, resume: bool, overwrite: bool) -> Iterator[None]:
        """Start or continue a run that no other process trains at the same time."""
        self.check(recipe, resume=resume, overwrite=overwrite)  # before a directory is made for the lock
        is_new = not (resume and self.recipe.is_file())
        with made_folder(self.path), contextlib.ExitStack() as held:
            with writing(self.path):
                held.enter_context(exclusive(self.path))
            self.start(recipe, resume=resume, overwrite=overwrite)
            for left in filter(is_unfinished, self.checkpoint.parent.iterdir()):
                left.unlink()
            try:
                yield
            except BaseException:
                if is_new and not self._has_begun():
                    self._clear()  # a start that failed: the corrected command finds its place free
                raise

    def start(self, recipe: dict[str, Any], *, resume: bool, overwrite: bool) -> None:
        """Prepare the directory, or raise before anything is changed."""
        self.check(recipe, resume=resume, overwrite=overwrite)
        if resume and self.recipe.is_file():
            return
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            self._clear()
            self.checkpoint.parent.mkdir()
            write_atomically(self.recipe, yaml.safe_dump(stored(recipe, self.path), sort_keys=False).encode())

    def _has_begun(self) -> bool:
        """Return whether there is anything that a resumed training would go on with."""
        return any(file.is_file() and file.stat().st_size for file in (self.checkpoint, self.metrics_file))

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
        check_folder_place(self.path)

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
        return any(p.name not in ("checkpoints", LOCK) and not is_unfinished(p) for p in self.path.iterdir())

    def _clear(self) -> None:
        """Remove the files that a run writes, and nothing else."""
        files = (self.recipe, self.metrics_file, self.model, self.certificate, self.certified)
        folders = (self.checkpoint.parent, self.figures, self.tensorboard)
        left = [path for path in self.path.iterdir() if is_unfinished(path)]
        left += map(self.certificate_of, get_args(Split))
        for target in (*files, self.tightness_file, *folders, *left):
            if target.is_dir():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)

    def _check_same(self, recipe: dict[str, Any]) -> None:
        earlier = self._read_recipe()
        if earlier != _to_compare(recipe):
            key = next(iter(_differences(earlier, _to_compare(recipe))), "its form")
            raise InputError(
                f"{self.path}: cannot resume, the recipe differs in {key}; --output chooses another place"
            )

    def _read_recipe(self) -> dict[str, Any]:
        try:
            found = yaml.safe_load(self.recipe.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise InputError(
                f"{self.recipe}: expected the recipe of a run, found something else; --overwrite begins anew"
            )
        return _to_compare(restored(found, self.path))

    def recipe_text(self) -> str:
        """Return recipe.yaml as it was written."""
        return self.recipe.read_text(encoding="utf-8")

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keep the state of the training, in the place of the one before."""
        save_checkpoint(self.checkpoint, checkpoint)

    def load_checkpoint(self) -> Checkpoint:
        """Return the last state of the training that was kept."""
        return load_checkpoint(self.checkpoint)

    def save_model(self, model: nn.Module, card: ModelCard) -> None:
        """Keep the trained weights, with the card that rebuilds their model."""
        save(model, card, self.model)

    def statement(self) -> TrainedStatement:
        """Return what is proved about the weights; the file is read again only if it has changed."""
        if not self.certificate.is_file():
            raise InputError(f"{self.path}: no {CERTIFICATE} in it (is the run finished?)")
        status = self.certificate.stat()
        version = status.st_mtime_ns, status.st_size, status.st_ino
        if self._statement is None or self._statement[0] != version:
            self._statement = version, read_trained_certificate(self.certificate)
        return self._statement[1]

    def save_certificate(
        self, statement: Statement, splits: Mapping[Split, tuple[Dataset, Certificate]]
    ) -> None:
        """Keep what is proved, sample by sample and in all; a run with a statement is finished."""
        save_samples(self.certified, splits)
        write_certificate(self.certificate, statement)

    def certificate_of(self, split: Split) -> Path:
        """Return where `lipcert certify` keeps what it finds on a split."""
        return self.path / f"certificate-{split}.json"

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

    def metrics_log(self, step: int) -> MetricsLog:
        """Open metrics.jsonl for a training that continues after `step`; its owner closes it."""
        self.rewind_metrics(step)
        return MetricsLog(self.metrics_file)

    def metrics(self) -> list[Metrics]:
        """Return the metrics of every epoch whose line is complete."""
        if not self.metrics_file.exists():
            return []
        lines = self.metrics_file.read_bytes().splitlines(keepends=True)
        return [self._metrics(line) for line in lines if line.endswith(b"\n")]

    def last_metrics(self) -> Metrics | None:
        """Return the metrics of the last complete line, without reading all of them."""
        try:
            with self.metrics_file.open("rb") as file:
                file.seek(max(self.metrics_file.stat().st_size - _LINE, 0))
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return None
        return self._metrics(lines[-2]) if len(lines) > 1 else None

    def _metrics(self, line: bytes) -> Metrics:
        try:
            return Metrics.of(line.decode())
        except ValueError as error:
            raise InputError(f"{self.metrics_file}: cannot be read ({error})") from None


def _to_compare(recipe: dict[str, Any]) -> dict[str, Any]:
    """Return the recipe without claim and name of the budget, which change no result; paths are absolute."""
    return {key: value for key, value in absolute(recipe).items() if key not in ("claim", "budget")}


def _differences(a: Any, b: Any, prefix: str = "") -> list[str]:
    """Return the dotted keys at which two nested mappings differ."""
    if not (isinstance(a, dict) and isinstance(b, dict)):
        return [] if a == b else [prefix]
    return [
        found
        for key in {**a, **b}
        for found in _differences(a.get(key), b.get(key), f"{prefix}.{key}" if prefix else str(key))
    ]
