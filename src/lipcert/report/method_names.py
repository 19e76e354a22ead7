"""Names of methods and models as the paper prints them."""

from __future__ import annotations

from typing import Any

from lipcert.recipes import Recipe
from lipcert.report.palette import loss_title

_MODELS = {"sandwich": "Sandwich", "liresnet": "LiResNet", "bronet": "BRONet", "lipnext": "LipNeXt"}
# Papers that used the loss of AOL with their own layers.
_AOL_LAYERS = {"sll": "SLL", "sandwich": "LBDN"}

# Arguments that make a network smaller or larger than the published one.
_SIZES = ("width", "convolutions", "dense", "inner", "stages")


def method_of(recipe: Recipe) -> str:
    """Return the name of the paper's method."""
    if recipe.loss.name == "lmt" and recipe.train.local is not None:
        return "Local-Lip-B"
    if recipe.loss.name == "aol":
        return _AOL_LAYERS.get(recipe.model.name, "AOL")
    return loss_title(recipe.loss.name)


def model_of(recipe: Recipe) -> str:
    """Return the name of the published architecture."""
    name, arguments = recipe.model.name, recipe.model.arguments
    if name == "lipconv":
        return f"LipConv-{arguments.get('depth', 20)}"
    if name in ("cpl", "sll"):
        return f"{name.upper()}-{str(arguments.get('size', 'xl')).upper()}"
    if name == "uniform":
        return f"uniform, {arguments.get('layer', 'plain')}"
    return _MODELS.get(name, name.upper())


def is_published_size(recipe: Recipe) -> bool:
    """Return whether no argument changes the size of the architecture."""
    arguments: dict[str, Any] = recipe.model.arguments
    usual = {"width": 1.0, "stages": 3 if recipe.data.name.startswith("cifar") else 4}
    return all(name not in arguments or arguments[name] == usual.get(name) for name in _SIZES)
