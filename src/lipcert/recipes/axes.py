"""Values that a key of a recipe takes in turn: `seed=1..9`, `loss.eps=0.1,0.2`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from lipcert.errors import InputError

# The numbers of one range at most: each is a training.
_MOST = 100_000


def parse_values(text: str) -> list[str]:
    """Split values at commas and expand ranges of whole numbers; brackets enclose one value.

    Example:
        >>> parse_values("1..3,7")
        ['1', '2', '3', '7']
        >>> parse_values("{name: ramp, first: 0.1}, null")
        ['{name: ramp, first: 0.1}', 'null']
        >>> parse_values("[[1, 2], [3, 4]], null")
        ['[[1, 2], [3, 4]]', 'null']
    """
    values: list[str] = []
    for part in _parts(text):
        first, dots, last = part.strip().partition("..")
        if dots and first.isdecimal() and last.isdecimal():
            if int(last) - int(first) >= _MOST:
                raise InputError(f"{part.strip()}: expected a range of at most {_MOST:,} numbers")
            values += map(str, range(int(first), int(last) + 1))
        else:
            values.append(part.strip())
    return values


def _parts(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "[{") - (sign in "]}")
        if sign == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def combinations(axes: Sequence[str], flag: str) -> list[dict[str, str]]:
    """Return every combination of one value per key.

    Example:
        >>> combinations(["seed=1,2", "loss.eps=0.1"], "--over")
        [{'seed': '1', 'loss.eps': '0.1'}, {'seed': '2', 'loss.eps': '0.1'}]
    """
    found: dict[str, list[str]] = {}
    for text in axes:
        key, values = _axis(text, flag)
        if key in found:
            raise InputError(f"{flag}: {key} comes twice")
        found[key] = values
    return [dict(zip(found, chosen, strict=True)) for chosen in product(*found.values())]


def settings_of(chosen: Mapping[str, str]) -> list[str]:
    """Return the settings in the form of `--set`."""
    return [f"{key}={value}" for key, value in chosen.items()]


def _axis(text: str, flag: str) -> tuple[str, list[str]]:
    key, equals, values = text.partition("=")
    found = parse_values(values)
    if not (key.strip() and equals and found and all(found)):
        raise InputError(f"{flag}: expected KEY=VALUES such as seed=1..9 or loss.eps=0.1,0.2, got {text!r}")
    if len(set(found)) < len(found):
        raise InputError(f"{flag}: {key.strip()} has a value twice in {values!r}")
    return key.strip(), found
