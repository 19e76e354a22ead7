"""The file that `lipcert new` writes: a template with the name that the user chose."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from lipcert.atomic import check_file_place, made_folder, write_atomically
from lipcert.commands.support.completion import NAMES, new_kinds
from lipcert.commands.support.registries import KINDS
from lipcert.errors import InputError
from lipcert.suggestions import expected_one_of

_SUFFIX = ".py.txt"
_WORD = re.compile(r"[a-z][a-z0-9]*")


@dataclass(frozen=True)
class Spelling:
    """A name as registries, functions and classes write it."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Spelling:
        """Read a name such as squared-hinge, squared_hinge or SquaredHinge.

        Example:
            >>> Spelling.of("SquaredHinge").registered, Spelling.of("squared-hinge").class_name
            ('squared-hinge', 'SquaredHinge')
        """
        apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", text)
        words = tuple(apart.lower().replace("_", "-").split("-"))
        if not all(_WORD.fullmatch(word) for word in words):
            raise InputError(f"NAME: expected letters and digits, such as squared-hinge, got {text!r}")
        return cls(words)

    @property
    def registered(self) -> str:
        """Return the name in recipes."""
        return "-".join(self.words)

    @property
    def function(self) -> str:
        """Return the name of a function or a file."""
        return "_".join(self.words)

    @property
    def class_name(self) -> str:
        """Return the name of a class."""
        return "".join(word.capitalize() for word in self.words)

    def put_into(self, template: str) -> str:
        """Replace the name of a template by this one."""
        for mine, its in (
            (self.registered, "my-name"),
            (self.function, "my_name"),
            (self.class_name, "MyName"),
        ):
            template = template.replace(its, mine)
        return template


def written_text(kind: str, name: str) -> str:
    """Return the content of a new file."""
    if kind not in new_kinds():
        raise InputError(f"KIND: {expected_one_of(new_kinds(), kind)}")
    place = files("lipcert").joinpath(f"laws/templates/{kind}{_SUFFIX}")
    return Spelling.of(name).put_into(place.read_text(encoding="utf-8"))


def write_new(kind: str, name: str, output: Path | None, overwrite: bool) -> Path:
    """Write the file; raise if the name or the place is taken."""
    text, spelling = written_text(kind, name), Spelling.of(name)
    path = output or Path(f"{spelling.function}.py")
    if path.suffix != ".py":
        raise InputError(f"--output: expected a file that ends in .py, got {path}")
    _check_name(kind, spelling, text, path)
    check_file_place(path)
    if path.exists() and not overwrite:
        raise InputError(f"{path}: exists; --overwrite replaces it, --output chooses another place")
    with made_folder(path.parent):
        write_atomically(path, text.encode())
    return path


def _check_name(kind: str, name: Spelling, text: str, path: Path) -> None:
    """Raise if the name means something else to Python, to lipcert or to the file itself."""
    said = f"NAME: expected another name than {name.registered}"
    names = {name.function, name.class_name}
    if any(keyword.iskeyword(n) or hasattr(builtins, n) for n in names):
        raise InputError(f"{said}, which is a word of Python")
    if names & set(_imported(text)):
        raise InputError(f"{said}, which the file imports under this name")
    if _is_module(path):
        raise InputError(f"{said}: {path} would hide the installed module {path.stem}")
    if {name.registered, name.class_name} & _known(text):
        raise InputError(f"{said}: lipcert has a {kind} of this name")


def _imported(text: str) -> Iterable[str]:
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom))
    return (alias.asname or alias.name for node in nodes for alias in node.names)


def _is_module(path: Path) -> bool:
    """Return whether an installed module has the name of the file, which it would replace where it lies."""
    found = find_spec(path.stem) if path.stem.isidentifier() else None
    return found is not None and found.origin is not None and Path(found.origin).resolve() != path.resolve()


def _known(text: str) -> set[str]:
    """Read the names in the registry that the file uses; a file without one has a layer."""
    registry = next((kind for kind in KINDS.values() if f"@{kind.registry}.register(" in text), None)
    return set(NAMES["layers"]() if registry is None else registry.names())
