"""README and docs: their code runs, their numbers are those of results/, their links lead somewhere."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = {path: FENCE.findall(path.read_text()) for path in DOCUMENTS}
KINDS = {"python", "sh", "yaml", ""}  # without a name: what a program printed, or a tree of files

# Commands that the tests only parse, all their options and names, and why they are not run.
PARSED = {
    "lipcert data fetch": "downloads",
    "lipcert train cifar10-": "needs CIFAR-10, and half an hour or several GPUs",
    "lipcert sweep": "dozens of trainings, on a cluster; tests/sweeps runs smaller ones",
    "lipcert reproduce": "many minutes; tests/commands/test_reproduction.py runs smaller ones",
    "lipcert explore": "serves a page until it is stopped; tests/explore opens it",
    "lipcert report runs/cifar10-": "of trainings that are not run; tests/report runs it",
}
# Commands that run with less to do.
SMALLER = {
    "lipcert train moons-cll --output": ["--budget", "smoke"],
    "lipcert train folder": ["--budget", "smoke"],
    "lipcert attack": ["--budget", "smoke"],
}


def of_kind(kind: str) -> list[Path]:
    """The documents with such blocks."""
    return [path for path, blocks in BLOCKS.items() if any(name == kind for name, _ in blocks)]


def commands(path: Path) -> list[str]:
    """Lines of the shell blocks, without comments."""
    code = "\n".join(code for name, code in BLOCKS[path] if name == "sh").replace("\\\n", " ")
    return [shlex.join(words) for line in code.splitlines() if (words := shlex.split(line, comments=True))]


ALL_COMMANDS = [line for path in DOCUMENTS for line in commands(path)]


# Pages that take longer than a quarter of a minute, by what is run of them.
SLOW = {"python": {"estimator.md", "export.md"}, "sh": {"README.md", "export.md"}}


def pages(kind: str) -> list[Any]:
    """The documents with such blocks, as cases of a test."""
    return [
        pytest.param(path, id=path.name, marks=[pytest.mark.slow] if path.name in SLOW[kind] else [])
        for path in of_kind(kind)
    ]


def test_every_block_is_of_a_kind_that_is_executed() -> None:
    for path, blocks in BLOCKS.items():
        assert {name for name, _ in blocks} <= KINDS, path
        assert path.read_text().count("```") == 2 * len(blocks), f"{path}: a fence that is not found"


@pytest.mark.parametrize("path", pages("python"))
def test_python_and_recipes_run(path: Path, tmp_path: Path) -> None:
    """From top to bottom, as a page is read."""
    program = "\n".join(code for name, code in BLOCKS[path] if name == "python")
    for i, recipe in enumerate(code for name, code in BLOCKS[path] if name == "yaml"):
        (tmp_path / f"{i}.yaml").write_text(recipe)
        program += "\nfrom lipcert.recipes import execute, read_recipe\nfrom pathlib import Path\n"
        program += f"execute(read_recipe('{i}.yaml'), Path('run-{i}'))\n"
    (tmp_path / "page.py").write_text(program)
    done = subprocess.run([sys.executable, "page.py"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr

    if path.name == "README.md":  # both examples end in a class and a radius
        printed = re.findall(r"tensor\(\[0\]\) tensor\(\[(0\.\d+)\]", done.stdout)
        assert len(printed) == 2
        assert all(float(radius) > 0.1 for radius in printed)


def test_recipes_stand_beside_python() -> None:
    assert set(of_kind("yaml")) <= set(of_kind("python"))


@pytest.mark.parametrize("path", pages("sh"))
def test_commands_run(path: Path, cli: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    """One after the other in one directory, but for those in PARSED."""
    put_images_in(tmp_path)
    lines = commands(path)
    if any("runs/folder" in line for line in lines) and path.name != "own-data.md":
        lines.insert(0, "lipcert train folder")  # another page trains it
    for line in lines:
        if line.startswith("lipcert ") and not line.startswith(tuple(PARSED)):
            less = next((more for start, more in SMALLER.items() if line.startswith(start)), [])
            extra = [] if "--budget" in line else less
            status, _, complaint = cli(*shlex.split(line)[1:], *extra)
            assert status == 0, f"{line}: {complaint}"
        elif line.startswith("python "):
            program, *words = shlex.split(line)[1:]
            done = subprocess.run([sys.executable, ROOT / program, *words], cwd=tmp_path)
            assert done.returncode == 0, line


def put_images_in(place: Path) -> None:
    """What the commands speak of: photos/ with a folder a class, photo.jpg, more/."""
    from lipcert.data.examples import write_folder

    folder = Path(write_folder(place / "written")["root"])
    shutil.move(folder, place / "photos")
    image = next(path for path in sorted((place / "photos").rglob("*")) if path.is_file())
    (place / "more").mkdir()
    for name in ("photo.jpg", "more/another.jpg"):
        shutil.copy(image, place / name)


@pytest.mark.parametrize("line", sorted(set(ALL_COMMANDS)))
def test_commands_can_be_parsed(line: str) -> None:
    program, *words = shlex.split(line)
    PARSERS[program](words)


def parse_lipcert(words: list[str]) -> None:
    """The command line itself takes all options and arguments; the names of recipes exist."""
    import typer

    from lipcert.cli import app
    from lipcert.commands.work.reproduction import parse_seeds
    from lipcert.paper import REPRODUCTIONS
    from lipcert.recipes import read_recipe, read_stack
    from lipcert.sweeps import lay_out

    command: Any = typer.main.get_command(app)
    context = command.make_context("lipcert", list(words), resilient_parsing=True)
    while hasattr(command, "resolve_command"):
        name, command, words = command.resolve_command(context, list(words))
        context = command.make_context(name, list(words), parent=context)
    given = context.params
    if context.info_name == "train" and len(given["recipes"]) == 1 and not given["stack"]:
        read_recipe(given["recipes"][0], given["budget"], given["set_"] or [])
    elif context.info_name == "train":
        read_stack(given["recipes"], given["budget"], given["set_"] or [], given["stack"] or [])
    elif context.info_name == "sweep":
        lay_out(given["recipe"], given["budget"], given["set_"] or [], given["over"], given["output"])
    elif context.info_name == "reproduce":
        assert given["name"] in REPRODUCTIONS
        parse_seeds(given["seeds"] or "1")


def parse_make(words: list[str]) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(words) <= set(targets)


def parse_pip(words: list[str]) -> None:
    verb, what = words
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    match = re.fullmatch(r"(?:\.|lipcert)(?:\[([\w,]+)\])?", what)
    assert verb == "install"
    assert match
    assert set((match[1] or "all").split(",")) <= set(extras)


def parse_python(words: list[str]) -> None:
    assert (ROOT / words[0]).is_file()


def parse_ssh(words: list[str]) -> None:
    parse_lipcert(words[words.index("lipcert") + 1 :])


PARSERS = {
    "lipcert": parse_lipcert,
    "make": parse_make,
    "pip": parse_pip,
    "python": parse_python,
    "ssh": parse_ssh,
}


def test_a_command_that_is_wrong_is_not_parsed() -> None:
    for line in (
        "certify runs/x --radius 1",
        "train no-such-recipe",
        "sweep moons-cll --over loss.epsilon=1",
    ):
        with pytest.raises(Exception, match=r"radius|no-such-recipe|epsilon"):
            parse_lipcert(line.split())


def test_what_is_only_parsed_or_made_smaller_still_occurs() -> None:
    for start in [*PARSED, *SMALLER]:
        assert any(line.startswith(start) for line in ALL_COMMANDS), start


@pytest.mark.slow
def test_the_files_of_the_page_on_extending_obey_the_laws(tmp_path: Path) -> None:
    """Each is put into its package, in a process of its own, and the laws run over what it registers."""
    text = (ROOT / "docs" / "extending.md").read_text()
    files = re.findall(r"`src/lipcert/(\w+)/(\w+)\.py`:.*?```python\n(.*?)```", text, re.DOTALL)
    assert [package for package, *_ in files] == ["losses", "nn", "data"]
    program = "import importlib, pytest, sys\n"
    for package, name, code in files:
        (tmp_path / package).mkdir()
        (tmp_path / package / f"{name}.py").write_text(code)
        program += (
            f"importlib.import_module('lipcert.{package}').__path__.append({str(tmp_path / package)!r})\n"
        )
        program += f"importlib.import_module('lipcert.{package}.{name}')\n"
    laws = [str(ROOT / "tests" / "laws" / f"test_{kind}.py") for kind in ("losses", "layers", "data")]
    chosen = "squared-hinge or RotatePairs or circles"
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-k", chosen, *laws]
    program += f"sys.exit(pytest.main({arguments!r}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(done.stdout.rpartition(" passed")[0].split()[-1]) >= 20


PACKAGES = ("attack", "bounds", "data", "export", "losses", "models", "nn")
PACKAGES += ("paper", "recipes", "sweeps", "train")


def documented() -> set[int]:
    """Everything that a page takes from a docstring, modules with all that is in them."""
    found: set[int] = set()
    for path in DOCUMENTS:
        for name in re.findall(r"^::: ([\w.]+)$", path.read_text(), re.MULTILINE):
            thing = resolved(name)
            members = vars(thing).values() if inspect.ismodule(thing) else [thing]
            found |= {id(m) for m in members if callable(m)}
    return found


def resolved(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        home, _, last = name.rpartition(".")
        return getattr(importlib.import_module(home), last)


def test_every_public_name_is_in_the_reference() -> None:
    there = documented()
    for package in ("lipcert", *(f"lipcert.{name}" for name in PACKAGES)):
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if (inspect.isclass(thing) or inspect.isfunction(thing)) and id(thing) not in there:
                raise AssertionError(f"{package}.{name} is on no page: add `::: {package}.{name}`")


def test_every_loss_and_layer_has_its_equation() -> None:
    import lipcert.nn
    from lipcert.losses import LOSSES

    kinds = [LOSSES[name].constructor for name in LOSSES]
    kinds += [getattr(lipcert.nn, name) for name in lipcert.nn.__all__]
    for kind in kinds:
        module = sys.modules[kind.__module__]
        texts = [module.__doc__, *(member.__doc__ for member in vars(module).values())]
        assert any("$$" in text for text in texts if isinstance(text, str)), kind


def test_commands_in_the_documents_exist() -> None:
    from lipcert.paper import REPRODUCTIONS
    from lipcert.recipes import packaged_recipes

    text = "\n".join(path.read_text() for path in DOCUMENTS)
    for name in re.findall(r"lipcert reproduce ([a-z][\w-]*)", text):
        assert name in REPRODUCTIONS
    for name in re.findall(r"lipcert train ([a-z][\w.-]*)", text):
        assert name in packaged_recipes()


def test_tables_are_those_of_the_results() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "render.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_results_say_how_they_were_made() -> None:
    files = list((ROOT / "results").glob("*.json"))
    assert files
    for path in files:
        results = json.loads(path.read_text())
        assert results.keys() >= {"command", "date"}
        if "table" in results:
            assert results["environment"]["commit"]
            assert results["environment"]["machine"]
            assert all(len(row) == len(results["titles"]) for row in results["table"])
            continue
        assert results.keys() >= {"epochs", "seeds", "rows"}
        for row in results["rows"]:
            assert row["environment"]["commit"]
            assert row["environment"]["machine"]
            assert row["seconds"] > 0


def test_cll_certifies_every_training_point_at_the_true_margin_on_three_seeds() -> None:
    rows = json.loads((ROOT / "results" / "moons.json").read_text())["rows"]
    cll = [row for row in rows if row["loss"] == "cll" and row["eps"] == 0.15]
    assert sorted(row["seed"] for row in cll) == [1, 2, 3]
    assert all(row["train"] == {**row["train"], "samples": 2000, "cra": 1.0} for row in cll)


def test_the_verdicts_on_the_paper_are_those_of_the_results() -> None:
    rows = json.loads((ROOT / "results" / "table-seeds.json").read_text())["rows"]

    def lead(eps: float, split: str) -> float:
        """Mean CRA of CLL less that of GloRo, in points."""
        cra = {
            loss: [100 * r[split]["cra"] for r in rows if (r["loss"], r["eps"]) == (loss, eps)]
            for loss in ("cll", "gloro")
        }
        return statistics.mean(cra["cll"]) - statistics.mean(cra["gloro"])

    text = (ROOT / "docs" / "reproduction.md").read_text()
    assert abs(lead(0.2, "train")) < 0.05
    assert f"GloRo is level at 2ε = 0.4 and {-lead(0.25, 'train'):.1f} points ahead at 0.5" in text
    cll = {
        eps: statistics.mean(100 * r["train"]["cra"] for r in rows if (r["loss"], r["eps"]) == ("cll", eps))
        for eps in (0.2, 0.25)
    }
    table = json.loads((ROOT / "results" / "gloro-schedule.json").read_text())["table"]
    growing = {float(row[1]): float(row[3].split(" ")[0]) for row in table}
    behind = [f"{cll[eps] - growing[eps]:.1f}" for eps in (0.2, 0.25)]
    assert f"with its schedule it is {behind[0]} and {behind[1]} points behind" in text
    assert all(r["train"]["cra"] == 1 for r in rows if r["eps"] == 0.15)
    # At ε: whether GloRo's is smaller in the mean, and on every seed.
    sizes = {0.1: (True, False), 0.15: (False, False), 0.2: (True, True), 0.25: (True, True)}
    for eps, (in_the_mean, on_every_seed) in sizes.items():
        k_hf = {
            loss: [r["k_hf"] for r in rows if (r["loss"], r["eps"]) == (loss, eps)]
            for loss in ("cll", "gloro")
        }
        assert (statistics.mean(k_hf["gloro"]) < statistics.mean(k_hf["cll"])) == in_the_mean
        assert (max(k_hf["gloro"]) < min(k_hf["cll"])) == on_every_seed


def test_every_file_that_the_page_on_architecture_names_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = {name for name in re.findall(r"`([a-z_0-9/.]+)`", text) if "/" in name or name.endswith(".py")}
    assert len(named) > 30
    package = ROOT / "src" / "lipcert"
    assert [n for n in sorted(named) if not ((ROOT / n).exists() or any(package.rglob(n.rstrip("/"))))] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target
