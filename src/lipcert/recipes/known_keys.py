"""The dotted keys that a recipe may have, for suggestions where one is mistyped."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from lipcert.data.base import DATASETS
from lipcert.errors import InputError
from lipcert.losses import LOSSES
from lipcert.models import MODELS
from lipcert.recipes.schema import CertifySettings, Recipe, TrainSettings
from lipcert.registry import Registry
from lipcert.suggestions import meant_key
from lipcert.train.optimizers import OPTIMIZERS

# The parts of a recipe with a name, and what lipcert itself gives to their constructors.
_PARTS: dict[str, tuple[Registry[Any], set[str]]] = {
    "data": (DATASETS, {"split"}),
    "model": (MODELS, {"num_classes", "input_shape"}),
    "loss": (LOSSES, set()),
    "optimizer": (OPTIMIZERS, {"parameters", "head"}),
}


def known_keys(tree: Mapping[str, Any]) -> list[str]:
    """Return the keys of a recipe with these components, dotted as `--set` has them.

    Example:
        >>> [key for key in known_keys({"loss": {"name": "gloro"}}) if key.startswith("loss.")]
        ['loss.name', 'loss.eps', 'loss.temperature']
    """
    keys = list(Recipe.model_fields)
    keys += [f"train.{key}" for key in TrainSettings.model_fields]
    keys += [f"certify.{key}" for key in CertifySettings.model_fields]
    for part in _PARTS:
        keys += [f"{part}.name", *(f"{part}.{name}" for name in _arguments(part, tree.get(part)))]
    return keys


def _arguments(part: str, component: Any) -> list[str]:
    """Return the arguments of a component, none if it has no known name."""
    registry, provided = _PARTS[part]
    try:
        make = registry[component["name"]].constructor
    except (InputError, KeyError, TypeError):
        return []
    return [name for name in inspect.signature(make).parameters if name not in provided]


def question(error: ValidationError, tree: Mapping[str, Any]) -> str:
    """Return a suggestion where the first complaint is about an unknown key, nothing elsewhere."""
    first = error.errors()[0]
    if first["type"] != "extra_forbidden":
        return ""
    path, value = [str(part) for part in first["loc"]], first["input"]
    while isinstance(value, Mapping) and len(value) == 1:  # --set los.eps=1 is {los: {eps: 1}}
        ((key, value),) = value.items()
        path.append(str(key))
    return meant_key(".".join(path), known_keys(tree))
