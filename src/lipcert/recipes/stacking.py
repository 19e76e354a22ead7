"""Several recipes of one architecture as one training: which ones may be combined, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from lipcert.errors import InputError
from lipcert.recipes.axes import combinations, settings_of
from lipcert.recipes.reading import read_recipe
from lipcert.recipes.schema import Recipe


def read_stack(
    sources: Sequence[str], budget: str | None, overrides: Sequence[str], axes: Sequence[str]
) -> dict[str, Recipe]:
    """Return every recipe with every combination of the axes' values, by the name of its run.

    Example:
        >>> list(read_stack(["moons-cll"], "smoke", [], ["seed=1..3", "loss.eps=0.1"]))
        ['moons-cll-seed1-eps0.1', 'moons-cll-seed2-eps0.1', 'moons-cll-seed3-eps0.1']
    """
    recipes: dict[str, Recipe] = {}
    for source, chosen in product(sources, combinations(axes, "--stack")):
        recipe = read_recipe(source, budget, [*overrides, *settings_of(chosen)])
        marks = [f"{key.rpartition('.')[2]}{value}" for key, value in chosen.items()]
        name = "-".join([recipe.name, *marks])
        if name in recipes:
            raise InputError(f"--stack: {name} comes twice")
        recipes[name] = recipe
    check_alike(recipes)
    return recipes


def check_alike(recipes: Mapping[str, Recipe]) -> None:
    """Raise unless the recipes differ in seed, data and loss alone."""
    (first, one), *others = recipes.items()
    for name, recipe in others:
        mine, theirs = shared_part(one), shared_part(recipe)
        for key in mine:
            if mine[key] != theirs[key]:
                raise InputError(
                    f"--stack: {first} and {name} differ in {key}; a stack may differ in seed, data and loss"
                )


def shared_part(recipe: Recipe) -> dict[str, Any]:
    """Return the settings that the recipes of a stack share."""
    schedule = {k: v.model_dump() for k, v in recipe.schedule.items() if k.startswith("optimizer.")}
    parts = (recipe.model, recipe.optimizer, recipe.train)
    model, optimizer, train = (part.model_dump(mode="json") for part in parts)
    return {"model": model, "optimizer": optimizer, "train": train, "schedule": schedule}


def gains_from_stacking(recipe: Recipe) -> bool:
    """Return whether stacking is faster: for MLPs, whose steps are calls more than work."""
    return recipe.model.name == "mlp"
