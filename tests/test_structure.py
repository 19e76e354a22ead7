"""The shape of the code itself: imports point one way, names do not collide."""

from __future__ import annotations

import ast
import pkgutil
import re
from pathlib import Path

from torch import nn

import lipcert

ROOT = Path(lipcert.__file__).parent

# Each part may import itself and the parts before it.
ORDER = [
    "errors",
    "types",
    "transforms",
    "atomic",
    "registry",
    "environment",
    "hashing",
    "tables",
    "bounds",
    "nn",
    "losses",
    "models",
    "data",
    "certificates",
    "runs",
    "attack",
    "export",
    "train",
    "estimator",
    "recipes",
    "sweeps",
    "report",
    "paper",
    "explore",
    "commands",
    "cli",
    "__main__",
]


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("lipcert."):
            names.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names |= {a.name.split(".")[1] for a in node.names if a.name.startswith("lipcert.")}
    return names


def test_imports_point_one_way() -> None:
    files = [p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py"]
    assert {part_of(p) for p in files} == set(ORDER)
    for path in files:
        part = part_of(path)
        for other in imports_of(path):
            assert ORDER.index(other) <= ORDER.index(part), f"{path.relative_to(ROOT)} imports {other}"


def test_folders_of_tests_are_packages_of_the_library() -> None:
    tests = Path(__file__).parent
    folders = {path.parent.relative_to(tests) for path in tests.rglob("*.py")}
    others = {folder for folder in folders if folder.parts[:1] != ("laws",)}
    assert not {folder for folder in others if not (ROOT / folder / "__init__.py").is_file()}


def test_no_submodule_shares_its_name_with_a_public_function() -> None:
    for package in (
        "lipcert",
        "lipcert.bounds",
        "lipcert.losses",
        "lipcert.models",
        "lipcert.data",
        "lipcert.train",
    ):
        module = __import__(package, fromlist=["x"])
        submodules = {m.name for m in pkgutil.iter_modules(module.__path__)}
        functions = {
            n
            for n in module.__all__
            if callable(getattr(module, n)) and not isinstance(getattr(module, n), type)
        }
        assert not submodules & functions, package


# Module names that occur more than once, and why no reader confuses them. Commands are named as typed.
NAMESAKES = {
    "base": "the contract of its package",
    "aol": "the layer and the loss of one paper",
    "soc": "the layer and the loss of one paper",
    "sandwich": "the layer and the network of one paper",
    "linear": "a layer, a rule and a schedule, each named by its registry",
    "rounding": "an attack, named by its registry, and the arithmetic of provers",
}


def test_a_module_name_occurs_once() -> None:
    names = [p.stem for p in ROOT.rglob("*.py") if p.parent != ROOT / "commands" and p.stem != "__init__"]
    assert {name for name in names if names.count(name) > 1} == set(NAMESAKES)


def test_every_public_name_can_be_had() -> None:
    for name in lipcert.__all__:
        assert getattr(lipcert, name) is not None
    assert set(lipcert.__all__) <= set(dir(lipcert))


def private_names(path: Path) -> tuple[set[str], set[str]]:
    """Names with an underscore that a file defines, and those it reads from objects other than its own."""
    made, read = set(), set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            made.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            made.add(node.id)
        elif isinstance(node, ast.Attribute):
            (made if isinstance(node.ctx, ast.Store) else read).add(node.attr)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lipcert"):
            read |= {alias.name for alias in node.names}
    private = re.compile(r"_[a-z]")
    return {n for n in made if private.match(n)}, {n for n in read if private.match(n)}


def test_no_part_reads_what_is_private_to_another() -> None:
    made: dict[str, set[str]] = {part: set() for part in ORDER}
    read: dict[str, set[str]] = {part: set() for part in ORDER}
    for path in (p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py"):
        for kept, found in zip((made, read), private_names(path), strict=True):
            kept[part_of(path)] |= found
    torchs = set(dir(nn.Conv2d(1, 1, 1)))  # which some of our layers override
    for part in ORDER:
        others = set().union(*(made[other] for other in ORDER if other != part))
        assert (read[part] - made[part]) & others - torchs == set(), part


# A docstring says what a thing does or is, in a sentence.
FRAGMENT = re.compile(r"(Of|That of|Those|That|What|Who|Whoever)\b")


def test_no_docstring_begins_with_a_fragment() -> None:
    found = []
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                text = ast.get_docstring(node) or ""
                found += [f"{path.name}: {node.name}: {text[:60]}"] if FRAGMENT.match(text) else []
    assert not found
