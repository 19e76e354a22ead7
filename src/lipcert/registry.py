"""The only plug-in mechanism: a name, its constructor, and an example small enough for a CPU test.

A registry imports every file of its package at first use, so a contribution needs only one new
file: `lipcert list`, the recipes and the law tests find it automatically. Files of one's own and installed
packages register in the same way (`lipcert.extensions`).
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from lipcert.errors import InputError
from lipcert.extensions import load_installed
from lipcert.suggestions import meant

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
        return summary_of(self.constructor)

    @property
    def paper(self) -> str:
        """Return the paper that the module cites, if it cites one."""
        return citation_of(self.constructor)


def summary_of(thing: object) -> str:
    """Return the first line of a docstring: what lists and the tables of documents say."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def citation_of(thing: object) -> str:
    """Return the first citation in the docstring of a thing's module, up to its year; empty if none.

    Example:
        >>> from lipcert.losses import GloRo
        >>> citation_of(GloRo)
        'Leino, Wang, Fredrikson. Globally-Robust Neural Networks. ICML 2021'
    """
    _, *paragraphs = (inspect.getdoc(inspect.getmodule(thing)) or "").split("\n\n")
    cited = (re.match(r"[A-Z].+?\b(19|20)\d\d\b", part.replace("\n", " ")) for part in paragraphs)
    return next((found[0] for found in cited if found), "")


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
            if not constructor.__module__.startswith(self._package):
                self._discover()  # so that code of one's own, and not lipcert's, is told of a name in use
            if name in self._entries:
                raise InputError(f"{self.kind} {name!r} is registered twice")
            self._entries[name] = Entry(name, constructor, make)
            return constructor

        return add

    def __getitem__(self, name: str) -> Entry[T]:
        self._discover()
        try:
            return self._entries[name]
        except KeyError:
            known = ", ".join(sorted(self._entries))
            guess = meant(str(name), self._entries)
            raise InputError(f"unknown {self.kind} {name!r}{guess}; known: {known}") from None

    def __iter__(self) -> Iterator[str]:
        self._discover()
        return iter(sorted(self._entries))

    def create(self, name: str, **arguments: Any) -> T:
        """Construct an entry by name; arguments that it does not have are refused."""
        entry = self[name]
        known = inspect.signature(entry.constructor).parameters
        for key in arguments:
            if key not in known and all(p.kind is not p.VAR_KEYWORD for p in known.values()):
                guess = meant(key, known)
                raise InputError(f"{name}: {key}: unknown argument{guess}; known: {', '.join(known)}")
        return entry.constructor(**arguments)

    def example(self, name: str) -> T:
        """Construct the registered example."""
        return self.create(name, **self[name].example)

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        import_files(self._package)
        load_installed()


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
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _last_name(node.func) in calls:
                found |= _named(node.args)
    return sorted(found)


def names_of(file: Path, registry: str) -> set[str]:
    """Read the names that a file of one's own registers in this registry, without executing it."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return set()  # a shell has no place for a complaint; the command itself makes it
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {
        name
        for call in calls
        if isinstance(call.func, ast.Attribute) and _last_name(call.func.value) == registry
        for name in _named(call.args)
    }


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
