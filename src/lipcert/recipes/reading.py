"""Read a checked `Recipe` from a name or a YAML file: inheritance, budget, overrides, validation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from lipcert.errors import InputError
from lipcert.recipes.schema import Recipe
from lipcert.recipes.signatures import first_error

Tree = dict[str, Any]
_PACKAGED = files("lipcert.recipes") / "library"


class _Loader(yaml.SafeLoader):
    """A loader that reads 1e-3 as a number, where YAML 1.1 reads a text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+"), list("-+0123456789")
)


def packaged_recipes() -> list[str]:
    """Return the names of the recipes in the package."""
    return sorted(f.name.removesuffix(".yaml") for f in _PACKAGED.iterdir() if f.name.endswith(".yaml"))


def read_recipe(source: str, budget: str | None = None, overrides: Sequence[str] = ()) -> Recipe:
    """Read the recipe of a packaged name or a path, at a budget, with `key=value` overrides."""
    tree = _read(source)
    budgets = tree.pop("budgets", {})
    if budget is not None and budget != "full":
        if budget not in budgets:
            raise InputError(
                f"{source}: no budget {budget!r}; it has: full, {', '.join(budgets) or 'no other'}"
            )
        tree = _merge(tree, _unfold(budgets[budget]))
    for override in overrides:
        tree = _merge(tree, _parse_override(override))
    try:
        recipe = Recipe.model_validate(tree)
        recipe.check()
    except ValidationError as error:
        raise InputError(f"{source}: {first_error(error)}") from None
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    return recipe


def _read(source: str, heirs: tuple[str, ...] = ()) -> Tree:
    """Read the tree of a recipe, merged over the one it extends."""
    if source in heirs:
        raise InputError(f"{source}: extends itself")
    name, text = _text(source)
    try:
        tree = yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = f" (line {line + 1})" if line is not None else ""
        raise InputError(f"{source}: not YAML{where}") from None
    if not isinstance(tree, dict):
        raise InputError(f"{source}: expected keys and values, found {type(tree).__name__}")
    base = tree.pop("extends", None)
    tree.setdefault("name", name)
    if base is None:
        return tree
    if not isinstance(base, str):
        raise InputError(f"{source}: extends: expected the name of a recipe, got {base!r}")
    inherited = _read(base, (*heirs, source))
    # A budget's nulls remove keys of the recipe, not of the inherited budget.
    budgets = _merge(inherited.get("budgets", {}), tree.pop("budgets", {}), keep_null=True)
    return {**_merge(inherited, tree), "budgets": budgets}


def _text(source: str) -> tuple[str, str]:
    if source in packaged_recipes():
        return source, (_PACKAGED / f"{source}.yaml").read_text()
    path = Path(source)
    if path.suffix not in (".yaml", ".yml"):
        raise InputError(
            f"unknown recipe {source!r}; `lipcert list recipes` shows them, a file ends in .yaml"
        )
    try:
        return path.stem, path.read_text()
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{source}: not a text file") from None


def _merge(base: Tree, over: Tree, keep_null: bool = False) -> Tree:
    """Merge `over` into `base`: null removes a key, and another name replaces a whole component."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if value is None and not keep_null:
            merged.pop(key, None)
        elif isinstance(below, dict) and isinstance(value, dict):
            replaced = "name" in below and value.get("name", below["name"]) != below["name"]
            merged[key] = value if replaced else _merge(below, value, keep_null)
        else:
            merged[key] = value
    return merged


def _unfold(flat: Any) -> Tree:
    """Return {"a.b": c} as {"a": {"b": c}}; a schedule's own key keeps its dot."""
    if not isinstance(flat, dict):
        raise InputError(f"budgets: expected keys and values, got {flat!r}")
    tree: Tree = {}
    for key, value in flat.items():
        tree = _merge(tree, _nested(str(key), value), keep_null=True)  # null removes later, from the recipe
    return tree


def _parse_override(text: str) -> Tree:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InputError(f"--set {text}: expected key=value, such as train.epochs=100")
    try:
        parsed = yaml.load(value, _Loader)
    except yaml.YAMLError:
        raise InputError(f"--set {text}: the value is not YAML") from None
    return _nested(key, parsed)


def _nested(key: str, value: Any) -> Tree:
    parts = key.split(".")
    if parts[0] == "schedule" and len(parts) > 2:
        parts = ["schedule", ".".join(parts[1:3]), *parts[3:]]
    for part in reversed(parts):
        value = {part: value}
    assert isinstance(value, dict)
    return value
