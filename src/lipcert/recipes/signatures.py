"""Check arguments of a recipe against the signature of their function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model, field_validator

from lipcert.errors import InputError
from lipcert.recipes.expectations import complaint, numbers_only
from lipcert.suggestions import asked, closest


def checked_arguments(
    function: Callable[..., Any], arguments: Mapping[str, Any], provided: set[str], where: str
) -> dict[str, Any]:
    """Convert `arguments` to the annotated types; `provided` ones are given by lipcert."""
    names = {p.name for p in inspect.signature(function).parameters.values()} - provided
    for name in arguments:
        if name not in names:
            guess = asked(None if (found := closest(name, names)) is None else f"{where}.{found}")
            known = ", ".join(sorted(names)) or "none"
            raise InputError(f"{where}.{name}: unknown key{guess}; known: {known}")
    model = _model_of(function, frozenset(provided))
    try:
        values = model.model_validate(dict(arguments))
    except ValidationError as error:
        raise InputError(f"{where}.{first_error(error)}") from None
    return {name: getattr(values, name) for name in arguments}


def _model_of(function: Callable[..., Any], provided: frozenset[str]) -> type[BaseModel]:
    """Return a pydantic model with one field per parameter."""
    hints = _hints(function)
    fields: dict[str, Any] = {}
    for p in inspect.signature(function).parameters.values():
        if p.name not in provided:
            default = ... if p.default is inspect.Parameter.empty else p.default
            fields[p.name] = (hints.get(p.name, Any), default)
    checks: dict[str, Any] = {"numbers": field_validator("*", mode="wrap")(numbers_only)}
    settings = ConfigDict(arbitrary_types_allowed=True)
    return create_model("Arguments", __config__=settings, __validators__=checks, **fields)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return annotations as types; inherited ones of a dataclass are resolved where they were written."""
    if not isinstance(function, type):
        return get_type_hints(function)
    maker = next(kind for kind in function.__mro__ if "__init__" in vars(kind))
    made = vars(maker).get("__dataclass_params__")
    generated = made is not None and made.init
    return get_type_hints(function if generated else function.__init__)  # type: ignore[misc]


def first_error(error: ValidationError) -> str:
    """Return `key: what was expected, got value` for the first complaint."""
    first = error.errors()[0]
    # A union complains once per member, with the member's name at the end of the path.
    path = [
        str(part)
        for part in first["loc"]
        if isinstance(part, int) or str(part).isidentifier() or "." in str(part)
    ]
    key = ".".join(p for p in path if p not in ("float", "int", "function-plain"))
    if first["type"] == "extra_forbidden":
        return f"{key}: unknown key"
    if first["type"] == "missing":
        return f"{key}: missing; expected a value"
    return f"{key}: {complaint(first)}"
