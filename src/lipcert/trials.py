"""Many trainings, as ordinary `lipcert train` processes, some at a time; MLPs that fit together as stacks.

What is finished stays; what was interrupted goes on from its checkpoint.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from lipcert.errors import InputError, InterruptedRunError, LipcertError
from lipcert.recipes import Recipe, read_recipe
from lipcert.recipes.stacking import gains_from_stacking, shared_part
from lipcert.train.interrupt import Interrupt
from lipcert.train.rundir import RunDirectory


@dataclass(frozen=True)
class Trial:
    """One training of a sweep or a figure."""

    recipe: str
    seed: int
    path: Path
    budget: str | None = None
    settings: tuple[str, ...] = ()  # KEY=VALUE

    @property
    def overrides(self) -> list[str]:
        """What it sets beside the recipe."""
        return [*self.settings, f"seed={self.seed}"]

    def resolve(self) -> Recipe:
        """The recipe it runs, checked."""
        return read_recipe(self.recipe, self.budget, self.overrides)


@dataclass(frozen=True)
class Job:
    """One process: a trial, or several as a stack."""

    trials: tuple[Trial, ...]

    def command(self, overwrite: bool) -> list[str]:
        """The command line that runs it."""
        first = self.trials[0]
        recipes = list(dict.fromkeys(trial.recipe for trial in self.trials))
        settings = [*first.settings]
        if len(self.trials) == 1:
            flags = ["--output", str(first.path)]
            settings.append(f"seed={first.seed}")
        else:
            seeds = sorted({trial.seed for trial in self.trials})
            flags = ["--output", str(first.path.parent), "--stack", f"seed={','.join(map(str, seeds))}"]
        flags += [flag for setting in settings for flag in ("--set", setting)]
        flags += ["--budget", first.budget] if first.budget else []
        flags += ["--overwrite" if overwrite else "--resume"]
        return [sys.executable, "-m", "lipcert.cli", "train", *recipes, *flags]


def jobs_of(trials: Mapping[Trial, Recipe], processes: int) -> list[Job]:
    """Trials that gain from it as stacks, in as many parts as there are processes; the others alone."""
    alike: dict[str, list[Trial]] = {}
    for trial, recipe in trials.items():
        named = trial.path.name == f"{recipe.name}-seed{trial.seed}"  # as a stack names its runs
        stacks = named and gains_from_stacking(recipe)
        common = [trial.path.parent, trial.budget, trial.settings, shared_part(recipe)]
        alike.setdefault(str(common if stacks else trial.path), []).append(trial)
    return [Job(part) for group in alike.values() for part in _parts(group, processes)]


def _parts(trials: Sequence[Trial], parts: int) -> Iterator[tuple[Trial, ...]]:
    """Every recipe of a part with the same seeds, as a stack has them."""
    by_recipe: dict[str, list[Trial]] = {}
    for trial in trials:
        by_recipe.setdefault(trial.recipe, []).append(trial)
    by_seeds: dict[tuple[int, ...], list[list[Trial]]] = {}
    for mine in by_recipe.values():
        by_seeds.setdefault(tuple(sorted(trial.seed for trial in mine)), []).append(mine)
    for recipes in by_seeds.values():
        size = -(-len(recipes) // parts)
        for start in range(0, len(recipes), size):
            yield tuple(trial for mine in recipes[start : start + size] for trial in mine)


def check_trials(trials: Sequence[Trial], jobs: int | None = None) -> dict[Trial, Recipe]:
    """The recipes of all trials; raises before anything is written."""
    if jobs is not None and jobs < 1:
        raise InputError(f"--jobs: expected at least 1, got {jobs}")
    return {trial: trial.resolve() for trial in trials}


def run_trials(
    trials: Sequence[Trial], jobs: int | None = None, overwrite: bool = False
) -> list[RunDirectory]:
    """Run them all, `jobs` at a time; the first failure stops the rest and is raised."""
    recipes = check_trials(trials, jobs)
    missing = [
        trial
        for trial, recipe in recipes.items()
        if overwrite or not RunDirectory(trial.path).holds(recipe.model_dump(mode="json"))
    ]
    crew, processes = _Crew(overwrite), jobs or os.cpu_count() or 1
    bars = _bars(missing, [recipes[trial].train.epochs for trial in missing])
    with ThreadPoolExecutor(processes) as pool, bars as update, Interrupt() as interrupt:
        chosen = jobs_of({trial: recipes[trial] for trial in missing}, processes)
        futures = [pool.submit(crew.run, job) for job in chosen]
        try:
            running = set(futures)
            while running:
                done, running = wait(running, timeout=0.5, return_when=FIRST_EXCEPTION)
                update()
                for future in done:
                    future.result()
                if interrupt.requested:
                    raise InterruptedRunError(
                        "interrupted; finished trainings are kept and the others saved: "
                        "the same command goes on"
                    )
        except BaseException:
            crew.stop()
            raise
    return [RunDirectory(trial.path) for trial in trials]


class _Crew:
    """The processes under way, and a way to stop them once and gently."""

    def __init__(self, overwrite: bool) -> None:
        self._overwrite = overwrite
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False
        self._lock = threading.Lock()

    def run(self, job: Job) -> None:
        with self._lock:
            if self._stopped:
                return
            # In a session of its own: a Ctrl-C in the terminal reaches it only through `stop`, once.
            process = subprocess.Popen(
                job.command(self._overwrite),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self._running.add(process)
        _, complaint = process.communicate()
        with self._lock:
            self._running.discard(process)
        if process.returncode and not self._stopped:
            last = (complaint.strip().splitlines() or ["no message"])[-1].removeprefix("lipcert: ")
            kind = InputError if process.returncode == 2 else LipcertError
            raise kind(f"{job.trials[0].path}: {last}")

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.send_signal(signal.SIGINT)


class _bars:  # noqa: N801  a context manager, used like a function
    """One progress bar a training, fed from its metrics; quiet where stderr is not a terminal."""

    def __init__(self, trials: Sequence[Trial], epochs: Sequence[int]) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f} epochs"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks = {
            trial.path: self._progress.add_task(trial.path.name, total=n, start=False)
            for trial, n in zip(trials, epochs, strict=True)
        }

    def __enter__(self) -> _bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self) -> None:
        if self._progress.disable:
            return
        for path, task in self._tasks.items():
            metrics = RunDirectory(path).read_metrics()
            if metrics:
                self._progress.start_task(task)
                self._progress.update(task, completed=metrics[-1]["epoch"])
