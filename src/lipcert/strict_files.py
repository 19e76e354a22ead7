"""Strict reading of JSON files: anything unexpected or ambiguous is refused in one line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lipcert.errors import InputError

# No file of lipcert is longer: the certificate of ten thousand layers takes three megabytes.
_LONGEST = 1 << 24  # bytes


# A SHA-256 as text.
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Strict(BaseModel):
    """A model without other keys, conversions (true is not 1), NaN and infinity."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


Kind = TypeVar("Kind", bound=Strict)


def validated(path: Path, tree: dict[str, Any], kind: type[Kind], what: str) -> Kind:
    """Check every key and every type of the tree that was read from `path`."""
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        raise InputError(f"{path}: not {what} ({_complaint(error)})") from None
    except RecursionError:
        raise InputError(f"{path}: not {what} (nested too deeply)") from None


def read_json(path: Path, what: str) -> dict[str, Any]:
    """Return the object in a JSON file; no key twice, no NaN, no infinity, no absurd size or nesting."""
    try:
        with path.open("rb") as file:
            content = file.read(_LONGEST + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if len(content) > _LONGEST:
        raise InputError(f"{path}: longer than {_LONGEST >> 20} MB, so not {what}")
    try:
        tree = json.loads(
            content.decode(), object_pairs_hook=_without_twins, parse_constant=_finite, parse_float=_finite
        )
    except _AmbiguousError as error:
        raise InputError(f"{path}: {error}") from None
    except ValueError:
        raise InputError(f"{path}: cut short, or not JSON") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None
    if not isinstance(tree, dict):
        raise InputError(f"{path}: not {what}")
    return tree


class _AmbiguousError(Exception):
    """JSON that readers may disagree about."""


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _AmbiguousError(f"the key {shown(key)} occurs twice")
        found[key] = value
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _AmbiguousError(f"expected finite numbers, got {shown(text)}")
    return value


def _complaint(error: ValidationError) -> str:
    """Return the key of the first complaint and what is wrong with it."""
    first = error.errors(include_url=False)[0]
    key = shown(".".join(map(str, first["loc"])))
    known = {"extra_forbidden": "unknown key", "missing": "missing"}
    message = known.get(first["type"], str(first["msg"]).removeprefix("Value error, "))
    return f"{key}: {message[0].lower()}{message[1:]}" if key else message


def shown(text: str, most: int = 60) -> str:
    """Make text from a file safe to print: one line without control characters, `most` characters long."""
    plain = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: most + 1])
    return plain if len(plain) <= most else f"{plain[:most]}..."
