"""A sweep: one recipe, every combination of some of its keys' values, a directory for each."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lipcert.atomic import write_json
from lipcert.errors import InputError
from lipcert.recipes import Recipe, read_recipe
from lipcert.recipes.axes import combinations, settings_of
from lipcert.sweeps.trial import Trial

# The file by which a directory is known as a sweep.
FILE = "sweep.json"


@dataclass(frozen=True)
class Sweep:
    """Trials by the values they take."""

    output: Path
    recipe: str  # its name
    keys: tuple[str, ...]
    trials: tuple[tuple[Trial, tuple[str, ...]], ...]  # and the values of the keys

    def write(self, command: str) -> None:
        """What a report finds the runs by."""
        try:
            self.output.mkdir(parents=True, exist_ok=True)
            write_json(self.output / FILE, self._tree(command))
        except OSError as error:
            raise InputError(f"{self.output}: cannot be written ({error.strerror})") from None

    def _tree(self, command: str) -> dict[str, Any]:
        trials = [{"run": trial.path.name, "values": list(values)} for trial, values in self.trials]
        return {"command": command, "recipe": self.recipe, "keys": list(self.keys), "trials": trials}


def lay_out(
    source: str, budget: str | None, overrides: Sequence[str], axes: Sequence[str], output: Path | None
) -> Sweep:
    """Every combination, checked; nothing is written.

    Example:
        >>> sweep = lay_out("moons-cll", "smoke", [], ["loss.eps=0.1,0.2", "seed=1..2"], None)
        >>> [str(trial.path) for trial, _ in sweep.trials][0]
        'runs/moons-cll-sweep/loss.eps=0.1,seed=1'
    """
    if not axes:
        raise InputError("--over: expected at least one KEY=VALUES, such as seed=1..9")
    grid = combinations(axes, "--over")
    base = read_recipe(source, budget, overrides)
    place = output or Path("runs") / f"{base.name}-sweep"
    trials: dict[str, tuple[Trial, tuple[str, ...]]] = {}
    for chosen in grid:
        name = _file_name(",".join(settings_of(chosen)))
        if name in trials:
            raise InputError(f"--over: two combinations would go into {place / name}")
        recipe = read_recipe(source, budget, [*overrides, *settings_of(chosen)])
        trials[name] = Trial(place / name, recipe), tuple(chosen.values())
    _check_different([trial.recipe for trial, _ in trials.values()], grid)
    return Sweep(place, base.name, tuple(grid[0]), tuple(trials.values()))


def read_sweep(folder: Path) -> Sweep:
    """The sweep of a directory, as far as its trials have begun."""
    try:
        found = json.loads((folder / FILE).read_text())
        runs = [(folder / trial["run"], tuple(trial["values"])) for trial in found["trials"]]
        keys, name = tuple(found["keys"]), found["recipe"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{folder / FILE}: cannot be read as a sweep") from None
    begun = [(path, values) for path, values in runs if (path / "recipe.yaml").is_file()]
    trials = tuple((Trial(path, read_recipe(str(path / "recipe.yaml"))), values) for path, values in begun)
    return Sweep(folder, name, keys, trials)


def _check_different(recipes: Sequence[Recipe], grid: Sequence[dict[str, str]]) -> None:
    """A value written in two ways is one training, not two."""
    seen: dict[str, dict[str, str]] = {}
    for recipe, chosen in zip(recipes, grid, strict=True):
        earlier = seen.setdefault(recipe.model_dump_json(), chosen)
        if earlier is not chosen:
            one, other = (", ".join(settings_of(settings)) for settings in (earlier, chosen))
            raise InputError(f"--over: {one} and {other} are the same training")


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.,=+-]+", "_", text)
