"""A sweep: one recipe, every combination of some of its keys' values, one directory for each."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lipcert.atomic import write_json, writing
from lipcert.errors import InputError
from lipcert.recipes import Recipe, read_recipe
from lipcert.recipes.axes import combinations, settings_of
from lipcert.recipes.reading import recipe_name
from lipcert.runs import Run
from lipcert.sweeps.trial import Trial

# The file that marks a directory as a sweep.
FILE = "sweep.json"


@dataclass(frozen=True)
class Sweep:
    """The trials of a sweep, by the values they take."""

    output: Path
    recipe: str  # its name
    keys: tuple[str, ...]
    trials: tuple[tuple[Trial, tuple[str, ...]], ...]  # with the values of the keys
    unbegun: tuple[tuple[Path, tuple[str, ...]], ...] = ()  # trials on disk without a recipe
    command: str = ""  # that wrote it; empty before it is written

    def write(self, command: str) -> None:
        """Write the file by which a report finds the runs."""
        with writing(self.output):
            self.output.mkdir(parents=True, exist_ok=True)
            write_json(self.output / FILE, self._tree(command))

    def _tree(self, command: str) -> dict[str, Any]:
        trials = [{"run": trial.path.name, "values": list(values)} for trial, values in self.trials]
        return {"command": command, "recipe": self.recipe, "keys": list(self.keys), "trials": trials}


def lay_out(
    source: str, budget: str | None, overrides: Sequence[str], axes: Sequence[str], output: Path | None
) -> Sweep:
    """Return every combination, checked; nothing is written.

    Example:
        >>> sweep = lay_out("moons-cll", "smoke", [], ["loss.eps=0.1,0.2", "seed=1..2"], None)
        >>> [str(trial.path) for trial, _ in sweep.trials][0]
        'runs/moons-cll-sweep/loss.eps=0.1,seed=1'
    """
    if not axes:
        raise InputError("--over: expected at least one KEY=VALUES, such as seed=1..9")
    grid = combinations(axes, "--over")
    base = recipe_name(source, budget, overrides)
    place = output or Path("runs") / f"{base}-sweep"
    trials: dict[str, tuple[Trial, tuple[str, ...]]] = {}
    for chosen in grid:
        name = _file_name(",".join(settings_of(chosen)))
        if name in trials:
            raise InputError(f"--over: two combinations would go into {place / name}")
        recipe = read_recipe(source, budget, [*overrides, *settings_of(chosen)])
        trials[name] = Trial(place / name, recipe), tuple(chosen.values())
    _check_different([trial.recipe for trial, _ in trials.values()], grid)
    return Sweep(place, base, tuple(grid[0]), tuple(trials.values()))


def read_sweep(folder: Path) -> Sweep:
    """Read the sweep of a directory; trials that have not begun are kept apart."""
    content = _content(folder)
    trials, unbegun = [], []
    for run, values in content.runs.items():
        found = Run(folder / run)
        if found.recipe.is_file():
            trials.append((Trial.of(found), values))
        else:
            unbegun.append((found.path, values))
    return Sweep(folder, content.recipe, content.keys, tuple(trials), tuple(unbegun), content.command)


@dataclass(frozen=True)
class _Content:
    """The content of a sweep.json."""

    command: str
    recipe: str  # its name
    keys: tuple[str, ...]
    runs: dict[str, tuple[str, ...]]  # the values of the keys by run


def _content(folder: Path) -> _Content:
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
        runs = {str(trial["run"]): tuple(trial["values"]) for trial in found["trials"]}
        if any(len(values) != len(found["keys"]) for values in runs.values()):
            raise ValueError("a value per key")
        return _Content(str(found["command"]), str(found["recipe"]), tuple(found["keys"]), runs)
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{folder / FILE}: cannot be read as a sweep; `lipcert sweep` with --overwrite begins anew"
        ) from None


def check_place(sweep: Sweep) -> None:
    """Raise if the directory holds a sweep that this one does not extend: its table would be lost."""
    if not (sweep.output / FILE).is_file():
        return
    there = _content(sweep.output)
    mine = {trial.path.name: values for trial, values in sweep.trials}
    same = (there.recipe, there.keys) == (sweep.recipe, sweep.keys)
    if same and there.runs.items() <= mine.items():
        return
    other = f"{len(there.runs)} trainings of {there.recipe} over {', '.join(there.keys)}"
    raise InputError(
        f"{sweep.output}: holds another sweep, {other}; --output chooses another place, "
        "--overwrite replaces it, and one with all its values extends it"
    )


def overruled(sweep: Sweep) -> dict[str, float]:
    """Return keys of the loss whose schedule ends at one value for every start, and that value."""
    # Not for the optimiser: rates commonly end at the same value, and the way there matters.
    keys = [key for key in sweep.keys if key.startswith("loss.")]
    recipes = [trial.recipe for trial, _ in sweep.trials]
    return {key: end for key in keys for end in _common_ends(key, recipes)}


def _common_ends(key: str, recipes: Sequence[Recipe]) -> list[float]:
    """Return the values at which several values of a key end under one schedule."""
    ends: dict[str, dict[float, float]] = {}  # last values by first values, per schedule
    for recipe in recipes:
        if key in recipe.schedule:
            first = float(getattr(recipe.make_loss(), key.removeprefix("loss.")))
            last = recipe.make_schedules()[key](first, 1.0)
            ends.setdefault(recipe.schedule[key].model_dump_json(), {})[first] = last
    several = [found for found in ends.values() if len(found) > 1]
    return [min(f.values()) for f in several if _width(f.values()) <= 1e-9 * _width(f)]


def _width(numbers: Collection[float]) -> float:
    return max(numbers) - min(numbers)


def _check_different(recipes: Sequence[Recipe], grid: Sequence[dict[str, str]]) -> None:
    """Raise if two combinations are the same training, such as one value written in two ways."""
    seen: dict[str, dict[str, str]] = {}
    for recipe, chosen in zip(recipes, grid, strict=True):
        earlier = seen.setdefault(recipe.model_dump_json(), chosen)
        if earlier is not chosen:
            one, other = (", ".join(settings_of(settings)) for settings in (earlier, chosen))
            raise InputError(f"--over: {one} and {other} are the same training")


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.,=+-]+", "_", text)
