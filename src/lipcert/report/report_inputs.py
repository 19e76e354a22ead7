"""The sources of a report: finished runs and sweeps, checked before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from lipcert.certificates.statement import TrainedStatement
from lipcert.data.base import Split, shown_split
from lipcert.errors import InputError
from lipcert.runs import Run
from lipcert.runs.samples import Samples
from lipcert.sweeps.combinations import FILE, Sweep, read_sweep
from lipcert.sweeps.findings import SweepRow, noted_failures, rows_of
from lipcert.sweeps.summary import Combination, over_seeds
from lipcert.sweeps.trial import Trial


@dataclass(frozen=True, eq=False)
class Finished(Trial):
    """A finished training, and the content of its files."""

    name: str

    @cached_property
    def certificate(self) -> TrainedStatement:
        """Return what is proved."""
        return self.run.statement()

    @property
    def found_certificate(self) -> TrainedStatement | None:
        """Return what is proved, None if the training is not finished."""
        return self.certificate if self.run.certificate.is_file() else None

    @cached_property
    def witnessed(self) -> float | None:
        """Return how much f_j − f_i changes between two points, from tightness.json, if it was measured."""
        found = self.run.tightness()
        return None if found is None else found.lower

    @property
    def split(self) -> Split:
        """Return the split whose samples are shown."""
        return shown_split(self.certificate.splits)

    @cached_property
    def samples(self) -> Samples:
        """Return label, prediction, radius and rival of every sample of the split."""
        return self.run.samples(self.split)


@dataclass(frozen=True)
class Summed:
    """A sweep, its rows, and one row for all seeds of a combination."""

    sweep: Sweep
    name: str
    rows: list[SweepRow]
    summary: list[Combination]

    @property
    def unfinished(self) -> dict[str, str]:
        """Return why a training is not finished, by its name."""
        return {row.path.name: row.status for row in self.rows if row.found is None}

    @property
    def progress(self) -> str:
        """Say how many trainings are finished."""
        return f"{len(self.rows) - len(self.unfinished)} of {len(self.rows)} trainings are finished"


@dataclass(frozen=True)
class Sources:
    """Individually named runs, sweeps, and all finished runs of both."""

    runs: list[Finished]
    sweeps: list[Summed]
    everything: list[Finished]


def find_sources(paths: Sequence[Path]) -> Sources:
    """Find runs and sweeps; raise an error with the path for anything else."""
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError("a directory is named twice")
    found = [_finished(path) for path in paths if not (path / FILE).is_file()]
    sweeps = [read_sweep(path) for path in paths if (path / FILE).is_file()]
    trials = [trial for sweep in sweeps for trial, _ in sweep.trials]
    read = {trial.path.resolve(): trial for trial in trials}
    runs = [read.get(run.path.resolve()) or Trial.of(run) for run in found]
    everything = _named(_once([*runs, *(trial for trial in trials if trial.run.certificate.is_file())]))
    if not everything:
        raise InputError("nothing in these sweeps is finished yet")
    for run in everything:
        if run.certificate.seconds is None:  # bundled models have none
            raise InputError(f"{run.run.certificate}: no seconds in it, so it is not that of a training")
    _check_data(everything)
    _check_files(everything)
    names = names_of([sweep.output for sweep in sweeps])
    summed = [_summed(_with(sweep, everything), name) for sweep, name in zip(sweeps, names, strict=True)]
    return Sources(everything[: len(runs)], summed, everything)


def _with(sweep: Sweep, finished: Sequence[Finished]) -> Sweep:
    """Return the sweep with finished trainings in the place of their trials, so that files are read once."""
    read: dict[Path, Trial] = {run.path.resolve(): run for run in finished}
    trials = [(read.get(trial.path.resolve(), trial), values) for trial, values in sweep.trials]
    return replace(sweep, trials=tuple(trials))


def _summed(sweep: Sweep, name: str) -> Summed:
    rows = rows_of(sweep, noted_failures(sweep))
    return Summed(sweep, name, rows, over_seeds(rows))


def _finished(path: Path) -> Run:
    run = Run(path)
    if not path.is_dir():
        raise InputError(f"{path}: no such directory")
    if not run.recipe.is_file():
        raise InputError(f"{path}: neither a run (no recipe.yaml) nor a sweep (no {FILE})")
    if not run.certificate.is_file():
        raise InputError(f"{path}: no certificate.json in it (is the run finished?)")
    return run


def _once(runs: Sequence[Trial]) -> list[Trial]:
    """Keep a run that is both named and part of a sweep only where it comes first."""
    first: dict[Path, Trial] = {}
    for run in runs:
        first.setdefault(run.path.resolve(), run)
    return list(first.values())


def _named(runs: Sequence[Trial]) -> list[Finished]:
    names = names_of([run.path for run in runs])
    return [Finished(run.path, run.recipe, name) for run, name in zip(runs, names, strict=True)]


def names_of(paths: Sequence[Path]) -> list[str]:
    """Return the last part of each path, or as many parts as tell them apart.

    Example:
        >>> names_of([Path("/a/sweep/seed=1"), Path("/b/sweep/seed=1")])
        ['a-sweep-seed=1', 'b-sweep-seed=1']
    """
    parts = [path.resolve().parts[1:] for path in paths]  # without the root, which no file name takes
    for depth in range(1, max([1, *map(len, parts)]) + 1):
        names = ["-".join(one[-depth:]) for one in parts]
        if len(set(names)) == len(names):
            return names
    common = next(name for name in names if names.count(name) > 1)
    one, other, *_ = (path for path, name in zip(paths, names, strict=True) if name == common)
    raise InputError(f"{one} and {other}: cannot be told apart")


def _check_data(runs: Sequence[Finished]) -> None:
    first = runs[0]
    for other in runs[1:]:
        if other.recipe.data.name != first.recipe.data.name:
            raise InputError(
                f"{other.path}: is about {other.recipe.data.name}, {first.path} about "
                f"{first.recipe.data.name}; one table takes one data set"
            )


def _check_files(runs: Sequence[Finished]) -> None:
    """Read all files once, so that a damaged one is found before anything is written."""
    for run in runs:
        _ = run.certificate, run.samples, run.witnessed
