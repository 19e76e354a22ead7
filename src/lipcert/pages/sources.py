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
from lipcert.report.rows import Row
from lipcert.sweeps.findings import over_seeds, rows_of
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
class Summed:
    """A sweep, its rows, and one row for all seeds of a combination."""

    sweep: Sweep
    name: str
    rows: list[Row]
    summary: list[Row]
    command: str


@dataclass(frozen=True)
class Sources:
    """Runs named one by one, sweeps, and all runs of both that are finished."""

    runs: list[Finished]
    sweeps: list[Summed]
    everything: list[Finished]


def find_sources(paths: Sequence[Path]) -> Sources:
    """Raises, naming the path, for what is no finished run and no sweep."""
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError("a directory is named twice")
    runs = [_finished(path) for path in paths if not (path / FILE).is_file()]
    sweeps = [read_sweep(path) for path in paths if (path / FILE).is_file()]
    trials = [trial.run for sweep in sweeps for trial, _ in sweep.trials]
    everything = _named([*runs, *(run for run in trials if run.certificate.is_file())])
    if not everything:
        raise InputError("nothing in these sweeps is finished yet")
    _check_data(everything)
    names = names_of([sweep.output for sweep in sweeps])
    summed = [_summed(sweep, name) for sweep, name in zip(sweeps, names, strict=True)]
    return Sources(everything[: len(runs)], summed, everything)


def _summed(sweep: Sweep, name: str) -> Summed:
    rows = rows_of(sweep)
    command = json.loads((sweep.output / FILE).read_text())["command"]
    return Summed(sweep, name, rows, over_seeds(rows, sweep.keys), command)


def _finished(path: Path) -> RunDirectory:
    run = RunDirectory(path)
    if not path.is_dir():
        raise InputError(f"{path}: no such directory")
    if not run.recipe.is_file():
        raise InputError(f"{path}: neither a run (no recipe.yaml) nor a sweep (no {FILE})")
    if not run.certificate.is_file():
        raise InputError(f"{path}: no certificate.json in it (is the run finished?)")
    return run


def _named(runs: Sequence[RunDirectory]) -> list[Finished]:
    names = names_of([run.path for run in runs])
    return [Finished(run, name) for run, name in zip(runs, names, strict=True)]


def names_of(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, or as many as it takes to tell them apart.

    Example:
        >>> names_of([Path("/a/sweep/seed=1"), Path("/b/sweep/seed=1")])
        ['a-sweep-seed=1', 'b-sweep-seed=1']
    """
    parts, depth = [path.resolve().parts for path in paths], 1
    while len({one[-depth:] for one in parts}) < len(parts):
        depth += 1
    return ["-".join(one[-depth:]) for one in parts]


def _check_data(runs: Sequence[Finished]) -> None:
    first = runs[0]
    for other in runs[1:]:
        if other.recipe.data.name != first.recipe.data.name:
            raise InputError(
                f"{other.run.path}: is about {other.recipe.data.name}, {first.run.path} about "
                f"{first.recipe.data.name}; one table takes one data set"
            )
