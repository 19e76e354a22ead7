"""One training of a sweep or a figure, and the division of trainings among processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lipcert.errors import InputError
from lipcert.recipes import Recipe, read_run_recipe
from lipcert.recipes.stacking import gains_from_stacking, shared_part
from lipcert.runs import Run


@dataclass(frozen=True, eq=False)
class Trial:
    """A complete recipe, and the run directory it fills."""

    path: Path
    recipe: Recipe

    @classmethod
    def of(cls, run: Run) -> Trial:
        """Take the recipe from the run directory."""
        return cls(run.path, read_run_recipe(run))

    @cached_property
    def run(self) -> Run:
        """Return the run directory."""
        return Run(self.path)

    @cached_property
    def tree(self) -> dict[str, Any]:
        """Return the recipe as in its file."""
        return self.recipe.model_dump(mode="json")

    def is_finished(self) -> bool:
        """Return whether the directory holds exactly this training, with its certificate."""
        return self.run.holds(self.tree)


# The work of one process: a trial, or several as a stack.
Job = tuple[Trial, ...]


def check_trials(trials: Sequence[Trial], overwrite: bool = False) -> None:
    """Raise, before anything is written, if a trial has no free directory."""
    for trial in trials:
        trial.run.check(trial.tree, resume=not overwrite, overwrite=overwrite)
    if len({trial.path for trial in trials}) < len(trials):
        raise InputError("two trainings would go into one directory")


def jobs_of(trials: Sequence[Trial], processes: int) -> list[Job]:
    """Divide trials into jobs: stacks where they are faster, in as many parts as processes; others alone."""
    alike: dict[str, list[Trial]] = {}
    for trial in trials:
        stacks = gains_from_stacking(trial.recipe)
        key = json.dumps(shared_part(trial.recipe)) if stacks else str(trial.path)
        alike.setdefault(key, []).append(trial)
    jobs = []
    for group in alike.values():
        size = -(-len(group) // processes)
        jobs += [tuple(group[start : start + size]) for start in range(0, len(group), size)]
    return jobs
