"""The only plug-in mechanism: a name, its constructor, and an example small enough for a CPU test.

A registry imports every file of its package at first use, so a contribution needs only one new
file: `lipcert list`, the recipes and the law tests find it automatically.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
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
        import_files(self._package)


def import_files(package: str) -> list[ModuleType]:
    """Import every file of a package, in alphabetical order; packages inside it are left alone."""
    path = importlib.import_module(package).__path__
    names = [module.name for module in pkgutil.iter_modules(path) if not module.ispkg]
    return [importlib.import_module(f"{package}.{name}") for name in names]


def names_in(package: str, *calls: str) -> list[str]:
    """Read the names that the files of one of lipcert's packages register, without importing anything.

    A shell that completes a name waits for it. A call with one of these names, such as `register` or `rule`,
    registers the string that is its first argument, or else the classes among its arguments.

    Example:
        >>> names_in("lipcert.losses", "register")[:3]
        ['aol', 'certificate-regularisation', 'cll']
    """
    folder = Path(__file__).parent.joinpath(*package.split(".")[1:])
    found: set[str] = set()
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and _last_name(node.func) in calls:
                found |= _named(node.args)
    return sorted(found)


def _named(arguments: list[ast.expr]) -> set[str]:
    match arguments:
        case [ast.Constant(value=str(name)), *_]:
            return {name}
    return {_last_name(argument) for argument in arguments} - {""}


def _last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name; nothing for another expression."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""
