"""The shape of a law: a function that takes a registered thing and raises a sentence if it breaks the law.

Laws are written once. The tests call them for everything in lipcert, `lipcert check` for code of one's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from lipcert.registry import Registry

T = TypeVar("T")
Make = Callable[[], T]

DTYPES = (torch.float32, torch.float64)


class BrokenLawError(AssertionError):
    """A registered thing that breaks a law; the message says what was expected and what was found."""


def expect(holds: bool | Tensor, otherwise: str) -> None:
    """Raise the sentence unless the condition holds; an `assert` would vanish under `python -O`."""
    if not holds:
        raise BrokenLawError(otherwise)


def expect_close(
    found: Tensor, expected: Tensor, what: str, rtol: float | None = None, atol: float | None = None
) -> None:
    """Raise unless the tensors agree up to the rounding error of their precision."""
    try:
        torch.testing.assert_close(found, expected, rtol=rtol, atol=atol)
    except AssertionError:
        raise BrokenLawError(f"{what} ({_difference(found, expected)})") from None


def _difference(found: Tensor, expected: Tensor) -> str:
    """Say how two tensors differ."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return f"expected {described(expected)}, found {described(found)}"
    return f"they differ by up to {largest(found - expected):g}, of values up to {largest(expected):g}"


def described(thing: object) -> str:
    """Name the shape and type of a tensor, or the type of anything else."""
    if isinstance(thing, Tensor):
        return f"{thing.dtype} of shape {tuple(thing.shape)}"
    return type(thing).__name__


def largest(x: Tensor) -> float:
    """Return the largest absolute value; infinity if there is a NaN."""
    value = float(x.detach().abs().max()) if x.numel() else 0.0
    return math.inf if math.isnan(value) else value


def _always(thing: object) -> str:
    return ""


@dataclass(frozen=True)
class Law(Generic[T]):
    """A law of one kind; `exempt` says in words why a thing need not obey it, and is empty if it must."""

    name: str
    holds: Callable[[T], None]
    exempt: Callable[[T], str] = _always

    @property
    def sentence(self) -> str:
        """Return the name in words."""
        return self.name.replace("_", " ")

    def __call__(self, thing: T) -> None:
        """Raise if the thing breaks the law."""
        if not self.exempt(thing):
            self.holds(thing)


@dataclass(frozen=True)
class Registration(Generic[T]):
    """Something registered: `source` is the registry's own record, `modules` are those its code is in."""

    name: str
    source: object
    modules: frozenset[str]
    examples: Callable[[], Mapping[str, Make[T]]]


class Laws(Generic[T]):
    """The laws of one kind, and what is registered of that kind.

    Example:
        >>> registry: Registry[float] = Registry("number", package="lipcert.selftest")
        >>> laws = laws_of_registry("numbers", registry, registry.example)
        >>> @laws.add()
        ... def it_is_positive(number: float) -> None:
        ...     expect(number > 0, f"expected a number > 0, got {number}")
        >>> [law.sentence for law in laws]
        ['it is positive']
        >>> next(iter(laws))(-1.0)
        Traceback (most recent call last):
        lipcert.laws.law.BrokenLawError: expected a number > 0, got -1.0
    """

    def __init__(self, kind: str, registrations: Callable[[], list[Registration[T]]]) -> None:
        self.kind = kind
        self.registrations = registrations
        self._laws: list[Law[T]] = []

    def add(
        self, exempt: Callable[[T], str] = _always
    ) -> Callable[[Callable[[T], None]], Callable[[T], None]]:
        """Decorate a function whose name is the law."""

        def add(holds: Callable[[T], None]) -> Callable[[T], None]:
            self._laws.append(Law(getattr(holds, "__name__", ""), holds, exempt))
            return holds

        return add

    def __iter__(self) -> Iterator[Law[T]]:
        return iter(self._laws)

    def examples(self) -> dict[str, Make[T]]:
        """Return how to make every example of everything registered, by its name."""
        found = self.registrations()
        return {name: make for one in found for name, make in one.examples().items()}


def laws_of_registry(kind: str, registry: Registry[Any], make: Callable[[str], T]) -> Laws[T]:
    """Return the laws, still none, of what is in a registry; `make` makes the example of a name."""

    def registrations() -> list[Registration[T]]:
        return [_registration(registry, name, make) for name in registry]

    return Laws(kind, registrations)


def _registration(registry: Registry[Any], name: str, make: Callable[[str], T]) -> Registration[T]:
    entry = registry[name]
    modules = frozenset({entry.constructor.__module__})
    return Registration(name, entry, modules, lambda: {name: lambda: make(name)})
