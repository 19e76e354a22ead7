"""What a report is about: finished runs and sweeps, checked before anything is written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lipcert.certified_samples import load_certificates
from lipcert.errors import InputError
from lipcert.recipes import Recipe, read_recipe
from lipcert.sweeps.grid import FILE, Sweep, read_sweep
from lipcert.train.rundir import RunDirectory


@dataclass(frozen=True)
class Finished:
    """A finished run, and what its files say."""

    run: RunDirectory
    name: str

    @cached_property
    def recipe(self) -> Recipe:
        """Resolved."""
        return read_recipe(str(self.run.recipe))

    @cached_property
    def certificate(self) -> dict[str, Any]:
        """What is proved."""
        try:
            found: dict[str, Any] = json.loads(self.run.certificate.read_text())
        except ValueError:
            raise InputError(f"{self.run.certificate}: not JSON") from None
        return found

    @property
    def split(self) -> str:
        """The one that training has not seen, test if there is one."""
        return "test" if "test" in self.certificate["splits"] else list(self.certificate["splits"])[-1]

    @cached_property
    def samples(self) -> dict[str, Tensor]:
        """Label, prediction, radius and rival of every sample of the split."""
        return load_certificates(self.run.certified, self.split)

    @property
    def robust(self) -> Tensor:
        """The radii of what is right, 0 for the others."""
        right = self.samples["prediction"] == self.samples["label"]
        return torch.where(right, self.samples["radius"], 0.0)


@dataclass(frozen=True)
class Sources:
    """Runs named one by one, and sweeps."""

    runs: list[Finished]
    sweeps: list[Sweep]

    @property
    def everything(self) -> list[Finished]:
        """The runs, and those of the sweeps that are finished."""
        trials = [trial for sweep in self.sweeps for trial, _ in sweep.trials]
        done = [Finished(t.run, t.path.name) for t in trials if t.run.certificate.is_file()]
        return [*self.runs, *done]


def find_sources(paths: Sequence[Path]) -> Sources:
    """Raises, naming the path, for what is no finished run and no sweep."""
    sweeps = [read_sweep(path) for path in paths if (path / FILE).is_file()]
    runs = [_finished(path) for path in paths if not (path / FILE).is_file()]
    sources = Sources(_told_apart(runs), sweeps)
    if not sources.everything:
        raise InputError("nothing in these sweeps is finished yet")
    _check_data(sources.everything)
    return sources


def _finished(path: Path) -> RunDirectory:
    run = RunDirectory(path)
    if not path.is_dir():
        raise InputError(f"{path}: no such directory")
    if not run.recipe.is_file():
        raise InputError(f"{path}: neither a run (no recipe.yaml) nor a sweep (no {FILE})")
    if not run.certificate.is_file():
        raise InputError(f"{path}: no certificate.json in it (is the run finished?)")
    return run


def _told_apart(runs: Sequence[RunDirectory]) -> list[Finished]:
    """By the names of their directories, with as much of the path as it takes."""
    paths = [run.path.resolve() for run in runs]
    if len(set(paths)) < len(paths):
        raise InputError("a run is named twice")
    depth = 1
    while len({path.parts[-depth:] for path in paths}) < len(paths):
        depth += 1
    return [Finished(run, "/".join(path.parts[-depth:])) for run, path in zip(runs, paths, strict=True)]


def _check_data(runs: Sequence[Finished]) -> None:
    first = runs[0]
    for other in runs[1:]:
        if other.recipe.data.name != first.recipe.data.name:
            raise InputError(
                f"{other.run.path}: is about {other.recipe.data.name}, {first.run.path} about "
                f"{first.recipe.data.name}; one table takes one data set"
            )
