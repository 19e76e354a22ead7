"""Read a checked `Recipe` from a name or a YAML file: inheritance, budget, overrides, validation."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from lipcert.errors import InputError
from lipcert.recipes.imports import with_imports
from lipcert.recipes.known_keys import known_keys, question
from lipcert.recipes.schema import Recipe
from lipcert.recipes.signatures import first_error
from lipcert.runs import Run
from lipcert.runs.run_paths import expanded, restored
from lipcert.suggestions import meant, meant_key

Tree = dict[str, Any]

# No recipe has more. A short text of YAML can stand for billions, and a downloaded one may.
_MOST_VALUES = 100_000

_PACKAGED = files("lipcert.recipes") / "library"


class _Loader(yaml.SafeLoader):
    """A loader that reads 1e-3 as a number, where YAML 1.1 reads a text, and refuses to read a key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping, unless two of its keys are the same."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                again = f"the key {key.value} comes twice"
                raise yaml.constructor.ConstructorError(problem=again, problem_mark=key.start_mark)
            if isinstance(key, yaml.ScalarNode):
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+"), list("-+0123456789")
)


def packaged_recipes() -> list[str]:
    """Return the names of the recipes in the package."""
    return sorted(f.name.removesuffix(".yaml") for f in _PACKAGED.iterdir() if f.name.endswith(".yaml"))


def read_recipe(source: str, budget: str | None = None, overrides: Sequence[str] = ()) -> Recipe:
    """Read the recipe of a packaged name or a path, at a budget, with `key=value` overrides.

    The code that it imports is loaded.
    """
    return _checked(source, with_imports(_resolved(source, budget, overrides), source, execute=True))


def read_run_recipe(run: Run) -> Recipe:
    """Read the recipe of a run; the code that it was made with must have been loaded before."""
    source = str(run.recipe)
    return _checked(source, with_imports(_resolved(source, None, ()), str(run.path), execute=False))


def _checked(source: str, tree: Tree) -> Recipe:
    """Return the recipe of a tree, every key and argument checked."""
    try:
        recipe = Recipe.model_validate(tree)
        recipe.check()
    except ValidationError as error:
        raise InputError(f"{source}: {first_error(error)}{question(error, tree)}") from None
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    return recipe


def recipe_name(source: str, budget: str | None = None, overrides: Sequence[str] = ()) -> str:
    """Return the name of a recipe, which is read but not checked."""
    return str(_resolved(source, budget, overrides)["name"])


def _resolved(source: str, budget: str | None, overrides: Sequence[str]) -> Tree:
    """Return the tree of a recipe at a budget, with overrides."""
    tree = _read(source)
    budgets = tree.pop("budgets", {})
    if budget is not None and budget != "full":
        if budget not in budgets:
            others = ", ".join(budgets) or "no other"
            guess = meant(budget, ["full", *budgets])
            raise InputError(f"{source}: no budget {budget!r}{guess}; it has: full, {others}")
        tree = {**_merge(tree, _unfold(source, budget, budgets[budget])), "budget": budget}
    for override in overrides:
        tree = _merge(tree, _parse_override(override, tree))
    return expanded(tree)


def _read(source: str, heirs: tuple[str, ...] = ()) -> Tree:
    """Read the tree of a recipe, merged over the one it extends."""
    if source in heirs:
        raise InputError(f"{source}: extends itself")
    name, text = _text(source)
    found = _parse(source, text)
    tree: Tree = found if source in packaged_recipes() else restored(found, Path(source).parent)
    base = tree.pop("extends", None)
    tree.setdefault("name", name)
    if base is None:
        return tree
    if not isinstance(base, str):
        raise InputError(f"{source}: extends: expected the name of a recipe, got {base!r}")
    try:
        inherited = _read(base, (*heirs, source))
    except InputError as error:
        raise InputError(f"{source}: extends: {error}") from None
    # A budget's nulls remove keys of the recipe, not of the inherited budget.
    budgets = _merge(inherited.get("budgets", {}), tree.pop("budgets", {}), keep_null=True)
    return {**_merge(inherited, tree), "budgets": budgets}


def _parse(source: str, text: str) -> Tree:
    """Return the keys and values of a YAML text."""
    try:
        tree = yaml.load(text, _Loader)
        values = _count(tree, {})
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        told = [f"line {mark.line + 1}"] if mark is not None else []
        told += [problem] if problem else []
        raise InputError(f"{source}: not YAML ({', '.join(told) or 'unreadable'})") from None
    except RecursionError:
        raise InputError(f"{source}: not YAML (nested too deeply)") from None
    if values > _MOST_VALUES:
        raise InputError(
            f"{source}: expected at most {_MOST_VALUES:,} values, its YAML aliases stand for more"
        )
    if not isinstance(tree, dict):
        found = "nothing" if tree is None else type(tree).__name__
        raise InputError(f"{source}: expected keys and values such as `extends: moons-cll`, found {found}")
    if not isinstance(tree.get("budgets", {}), dict):
        raise InputError(f"{source}: budgets: expected keys and values, got {tree['budgets']!r}")
    return tree


def _count(tree: Any, known: dict[int, float]) -> float:
    """Count the values of a tree, those behind an alias each time; without end if it holds itself."""
    if not isinstance(tree, dict | list):
        return 1
    if id(tree) not in known:
        known[id(tree)] = math.inf
        inside = tree.values() if isinstance(tree, dict) else tree
        known[id(tree)] = 1 + sum(_count(value, known) for value in inside)
    return known[id(tree)]


def _text(source: str) -> tuple[str, str]:
    if source in packaged_recipes():
        return source, (_PACKAGED / f"{source}.yaml").read_text(encoding="utf-8")
    path = Path(source)
    if path.suffix not in (".yaml", ".yml"):
        guess = meant(source, packaged_recipes())
        raise InputError(
            f"unknown recipe {source!r}{guess}; `lipcert list recipes` shows them, a file ends in .yaml"
        )
    try:
        return path.stem, path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{source}: not a text file") from None


def _merge(base: Tree, over: Tree, keep_null: bool = False) -> Tree:
    """Merge `over` into `base`: null removes a key, and another name replaces a whole component."""
    # The package deepmerge would take these rules as a strategy of twelve lines: no shorter.
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


def _unfold(source: str, budget: str, flat: Any) -> Tree:
    """Return {"a.b": c} as {"a": {"b": c}}; a schedule's own key keeps its dot."""
    if not isinstance(flat, dict):
        raise InputError(f"{source}: budgets.{budget}: expected keys and values, got {flat!r}")
    tree: Tree = {}
    for key, value in flat.items():
        tree = _merge(tree, _nested(str(key), value), keep_null=True)  # null removes later, from the recipe
    return tree


def _parse_override(text: str, recipe: Tree) -> Tree:
    key, equals, value = text.partition("=")
    if not equals or not all(key.split(".")):
        raise InputError(f"--set {text}: expected key=value, such as train.epochs=100")
    try:
        parsed = yaml.load(value, _Loader)
    except (yaml.YAMLError, RecursionError):
        raise InputError(
            f"--set {text}: the value is not YAML, such as 3, [1, 2] or {{name: linear}}"
        ) from None
    if key.partition(".")[0] not in Recipe.model_fields:
        guess = meant_key(key, known_keys(recipe))
        raise InputError(f"--set {text}: {key}: unknown key{guess}")
    return _nested(key, parsed)


def _nested(key: str, value: Any) -> Tree:
    parts = key.split(".")
    if parts[0] == "schedule" and len(parts) > 2:
        parts = ["schedule", ".".join(parts[1:3]), *parts[3:]]
    for part in reversed(parts):
        value = {part: value}
    assert isinstance(value, dict)
    return value
