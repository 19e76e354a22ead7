"""Say in plain words what pydantic expected of a value; no name of a class of ours appears."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidatorFunctionWrapHandler
from pydantic_core import ErrorDetails

_KINDS = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "keys and values",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "keys and values",
    "sequence_str": "a list",
    "string_type": "a text",
    "tuple_type": "a list",
}

# The limit of a number or a length, by the name that pydantic gives to it.
_LIMITS = {
    "greater_than": ("a number > {}", "gt"),
    "greater_than_equal": ("a number >= {}", "ge"),
    "less_than": ("a number < {}", "lt"),
    "less_than_equal": ("a number <= {}", "le"),
    "too_short": ("at least {} of them", "min_length"),
    "literal_error": ("one of {}", "expected"),
}


def complaint(error: ErrorDetails) -> str:
    """Return "expected this, got that" for one error of pydantic."""
    message = str(error["msg"]).removeprefix("Value error, ")
    expected = _expected(error["type"], error.get("ctx") or {})
    if expected is None and ", got " in message:  # our own validators say it themselves
        return message
    return f"{expected or message[0].lower() + message[1:]}, got {error['input']!r}"


def _expected(kind: str, context: Mapping[str, Any]) -> str | None:
    if kind == "is_instance_of" and context.get("class") == "Sequence":
        return "expected a list"
    if kind in _KINDS:
        return f"expected {_KINDS[kind]}"
    if kind in _LIMITS:
        text, limit = _LIMITS[kind]
        return f"expected {text.format(str(context[limit]).replace(' or ', ', '))}"
    return None


def numbers_only(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Refuse true and false where a number is expected: YAML reads yes, no, on and off so."""
    found = validate(value)
    if _lost_truth(value, found):
        raise ValueError(f"expected a number, got {value!r}")
    return found


def _lost_truth(given: Any, found: Any) -> bool:
    """Return whether a truth value became a number, in a list as well."""
    if isinstance(given, bool):
        return isinstance(found, int | float) and not isinstance(found, bool)
    if isinstance(given, list) and isinstance(found, list | tuple) and len(given) == len(found):
        return any(map(_lost_truth, given, found))
    return False
