"""Suggest the name that a mistyped one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# The least likeness of a suggestion, from 0 to 1.
_LIKENESS = 0.6


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like this one, None if none is like it.

    Example:
        >>> closest("gloor", ["cll", "gloro"]), closest("unicorns", ["cll", "gloro"])
        ('gloro', None)
    """
    by_case = {one.lower(): one for one in known}
    found = get_close_matches(name.lower(), by_case, n=1, cutoff=_LIKENESS)
    return by_case[found[0]] if found else None


def closest_key(key: str, known: Iterable[str]) -> str | None:
    """Return the dotted key that was meant: one of the same end, or the one that is most like it.

    Example:
        >>> keys = ["loss.eps", "optimizer.lr", "train.epochs"]
        >>> closest_key("los.eps", keys), closest_key("lr", keys), closest_key("train.epoch", keys)
        ('loss.eps', 'optimizer.lr', 'train.epochs')
    """
    names = list(known)
    ends = [one for one in names if one.rpartition(".")[2] == key]
    return ends[0] if ends else closest(key, names)


def meant(name: str, known: Iterable[str]) -> str:
    """Return what follows an unknown name in a complaint: a question, or nothing.

    Example:
        >>> meant("cll2", ["cll", "gloro"]), meant("unicorns", ["cll"])
        (' (did you mean cll?)', '')
    """
    return asked(closest(name, known))


def meant_key(key: str, known: Iterable[str]) -> str:
    """Return what follows an unknown dotted key in a complaint."""
    return asked(closest_key(key, known))


def asked(suggestion: str | None) -> str:
    """Return a suggestion as a question in brackets, nothing if there is none."""
    return "" if suggestion is None else f" (did you mean {suggestion}?)"


def expected_one_of(known: Iterable[str], got: object) -> str:
    """Return the complaint about a value that is none of the known ones.

    Example:
        >>> expected_one_of(["auto", "exact"], "exakt")
        "expected one of auto, exact, got 'exakt' (did you mean exact?)"
    """
    names = list(known)
    return f"expected one of {', '.join(names)}, got {got!r}{meant(str(got), names)}"
