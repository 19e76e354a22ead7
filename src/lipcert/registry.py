"""The only plug-in mechanism: a name, its constructor, and an example small enough for a CPU test.

A registry imports every file of its package at first use, so a contribution needs only one new
file: `lipcert list`, the recipes and the law tests find it automatically.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from lipcert.errors import InputError

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Entry(Generic[T]):
    """A registered constructor and the arguments of its smallest realistic use."""

    name: str
    constructor: Callable[..., T]
    make_example: Callable[[], Mapping[str, Any]]

    @cached_property
    def example(self) -> Mapping[str, Any]:
        """Return the example's arguments, made at first use because that may write files."""
        return self.make_example()

    @property
    def summary(self) -> str:
        """Return the first line of the docstring."""
        return (inspect.getdoc(self.constructor) or "").partition("\n")[0]


class Registry(Generic[T]):
    """A map from names to constructors, found by importing the files of `package`."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._entries: dict[str, Entry[T]] = {}
        self._discovered = False

    def register(
        self, name: str, *, example: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None
    ) -> Callable[[F], F]:
        """Decorate a constructor; `example` holds, or makes, keyword arguments for the law tests."""
        make = example if callable(example) else lambda: example or {}

        def add(constructor: F) -> F:
            if name in self._entries:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._entries[name] = Entry(name, constructor, make)
            return constructor

        return add

    def __getitem__(self, name: str) -> Entry[T]:
        self._discover()
        try:
            return self._entries[name]
        except KeyError:
            known = ", ".join(sorted(self._entries))
            raise InputError(f"unknown {self.kind} {name!r}; known: {known}") from None

    def __iter__(self) -> Iterator[str]:
        self._discover()
        return iter(sorted(self._entries))

    def create(self, name: str, **arguments: Any) -> T:
        """Construct an entry by name."""
        return self[name].constructor(**arguments)

    def example(self, name: str) -> T:
        """Construct the registered example."""
        return self.create(name, **self[name].example)

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{self._package}.{module.name}")
