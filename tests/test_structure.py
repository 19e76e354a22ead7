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
    "suggestions",
    "progress",
    "types",
    "transforms",
    "waiting",
    "atomic",
    "locks",
    "cores",
    "extensions",
    "registry",
    "environment",
    "hashing",
    "strict_files",
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
    "selftest",
    "recipes",
    "costs",
    "sweeps",
    "report",
    "publishing",
    "paper",
    "laws",
    "explore",
    "commands",
    "cli",
    "__main__",
]


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
    """Modules and packages together, as `losses` is as easily confused with another `losses`."""
    modules = [p for p in ROOT.rglob("*.py") if p.parent != ROOT / "commands"]
    names = [p.parent.name if p.stem == "__init__" else p.stem for p in modules]
    assert {name for name in names if names.count(name) > 1} == set(NAMESAKES)


def test_every_public_name_can_be_had() -> None:
    for name in lipcert.__all__:
        assert getattr(lipcert, name) is not None
    assert set(lipcert.__all__) <= set(dir(lipcert))


def private_names(path: Path) -> tuple[set[str], set[str]]:
    """Names with an underscore that a file defines, and those it reads from objects other than its own."""
    made, read = set(), set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


def test_text_files_are_utf8_in_every_locale() -> None:
    """Ruff's PLW1514 knows the type of a path only where it is made."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                named = {keyword.arg for keyword in node.keywords}
                text = node.func.attr in ("read_text", "write_text") or {"text", "capture_output"} <= named
                if text and "encoding" not in named:
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert found == []


# Arguments that take one of a few words, by the names they have everywhere; commands parse them from text.
WORDS = ("accelerator", "effort", "precision", "rounding", "split")


def test_arguments_of_few_words_are_typed() -> None:
    found = []
    for path in (p for p in ROOT.rglob("*.py") if p.parent != ROOT / "commands"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = {ast.arg: "arg", ast.AnnAssign: "target"}.get(type(node))
            if named is None or getattr(node, "annotation", None) is None:
                continue
            name = ast.unparse(target) if isinstance(target := getattr(node, named), ast.AST) else target
            if name in WORDS and re.search(r"\bstr\b", ast.unparse(node.annotation)):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno} {name}")
    assert found == []


# The files of a run directory; `Run` has a place and a method for each.
RUN_FILES = (
    "recipe.yaml",
    "metrics.jsonl",
    "last.ckpt",
    "model.safetensors",
    "certificate.json",
    "certified.npz",
    "tightness.json",
)


def test_the_name_of_a_file_is_written_once() -> None:
    written = [
        node.value
        for path in (p for p in ROOT.rglob("*.py") if p.parent != ROOT / "commands")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in RUN_FILES
    ]
    assert sorted(written) == sorted(RUN_FILES)


# Decimals that are chosen outside tables/kinds.py, and why.
FORMATTED = {
    "certificates/statement.py": "the digits that a certificate keeps",
    "explore/image_view.py": "a width for the browser",
    "commands/work/cost_tables.py": "operations and times with their unit",
    "laws/layer_laws.py": "numbers within sentences about a broken law, which lie close together",
    "laws/prover_laws.py": "numbers within sentences about a broken law, which lie close together",
    "models/memory.py": "bytes with their unit",
    "paper/formula_claims.py": "numbers within sentences of verdicts",
    "paper/network_size.py": "a fraction within a sentence of results.json",
    "paper/parts.py": "numbers within sentences of results.json",
    "progress.py": "whole numbers in a line of a log",
    "report/moons_figure.py": "a slack without an exponent, as the paper prints it",
    "train/event_file.py": "a file name",
}


def formats(tree: ast.AST) -> list[int]:
    """The lines on which decimals are chosen, except in errors, which say what was found."""
    errors = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    said = {id(node) for error in errors for node in ast.walk(error)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None and id(node) not in said:
            text = ast.unparse(node.format_spec)
            found += [node.lineno] if re.search(r"\.\d+[efg%]", text) else []
    return found


def test_the_format_of_a_number_is_written_once() -> None:
    trees = {
        p.relative_to(ROOT).as_posix(): ast.parse(p.read_text(encoding="utf-8")) for p in ROOT.rglob("*.py")
    }
    found = {name: formats(tree) for name, tree in trees.items()}
    others = {name: lines for name, lines in found.items() if lines and name != "tables/kinds.py"}
    assert found["tables/kinds.py"]
    assert others.keys() == FORMATTED.keys(), others
