"""The size of the networks that a budget trains, beside the size of the paper's."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from lipcert.models import MODELS
from lipcert.models.convex_potential import published_size
from lipcert.recipes import Recipe

# Arguments besides the width that make a network smaller, and what they count.
_COUNTED = {
    "depth": "layers",
    "stages": "stages",
    "convolutions": "convolutions",
    "dense": "dense layers",
    "inner": "inner features",
}


def network_sizes(pairs: Iterable[tuple[Recipe, Recipe]]) -> str:
    """Describe the networks of some recipes, each beside its full budget; several by the names of models."""
    found = {(recipe.model.name, network_size(recipe, full)) for recipe, full in pairs}
    sizes = {size for _, size in found}
    if len(sizes) == 1:
        return sizes.pop()
    return "; ".join(f"{name} {size}" for name, size in sorted(found))


def network_size(recipe: Recipe, full: Recipe) -> str:
    """Describe a network: its width as a fraction of the full one's, and whatever else is fewer.

    Example:
        >>> from lipcert.recipes import read_recipe
        >>> name = "tiny-lipconv10-soc"
        >>> network_size(read_recipe(name, "cpu"), read_recipe(name))
        'width 0.125, 5 of 10 layers'
    """
    own, whole = _sizes(recipe), _sizes(full)
    fewer = [
        f"{own[key]} of {whole[key]} {noun}"
        for key, noun in _COUNTED.items()
        if key in own and own[key] != whole[key]
    ]
    fraction = own.get("width", 1.0) / whole.get("width", 1.0)
    return ", ".join([f"width {fraction:.3g}", *fewer])


def _sizes(recipe: Recipe) -> dict[str, Any]:
    """Return the arguments that set the size of a network, with the defaults of those that are not given."""
    name, given = recipe.model.name, recipe.model.arguments
    parameters = inspect.signature(MODELS[name].constructor).parameters
    known = {key: parameters[key].default for key in ("width", *_COUNTED) if key in parameters}
    if name in ("cpl", "sll"):
        known = vars(published_size(name, given.get("size", "xl")))
    return {**known, **{key: value for key, value in given.items() if key in known}}
