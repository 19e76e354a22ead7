"""README and docs: their code runs, their numbers are those of results/, their links lead somewhere."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lipcert.nn

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = {path: FENCE.findall(path.read_text()) for path in DOCUMENTS}
KINDS = {"python", "sh", "yaml", ""}  # without a name: what a program printed, or a tree of files

# Commands that the tests only parse, all their options and names, and why they are not run.
PARSED = {
    "lipcert check": "what a file registers stays in the process; tests/commands/test_check.py runs others",
    "lipcert data fetch": "downloads",
    "lipcert train cifar10-": "needs CIFAR-10, and half an hour or several GPUs",
    "lipcert sweep": "dozens of trainings, on a cluster; tests/sweeps runs smaller ones",
    "lipcert reproduce": "many minutes; tests/commands/work/test_reproduction.py runs smaller ones",
    "lipcert publish runs/folder": "uploads; tests/publishing does so to a server of its own",
    "lipcert verify hf://": "downloads",
    "lipcert predict hf://": "downloads",
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


def files_of(path: Path) -> dict[str, str]:
    """The files that a page shows: Python blocks whose first line is a comment with the file's name."""
    blocks = (code for name, code in BLOCKS[path] if name == "python")
    named = ((re.match(r"# (\w+\.py)\n", code), code) for code in blocks)
    return {match[1]: code for match, code in named if match}


def put_files_of(path: Path, place: Path) -> None:
    """Write the files that a page shows."""
    for name, code in files_of(path).items():
        (place / name).write_text(code)


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
    put_files_of(path, tmp_path)
    done = subprocess.run([sys.executable, "page.py"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr

    if path.name == "README.md":  # the example ends in a class and a radius
        (radius,) = re.findall(r"tensor\(\[0\]\) tensor\(\[(0\.\d+)\]", done.stdout)
        assert float(radius) > 0.1


def test_recipes_stand_beside_python() -> None:
    assert set(of_kind("yaml")) <= set(of_kind("python"))


@pytest.mark.parametrize("path", pages("sh"))
def test_commands_run(path: Path, cli: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    """One after the other in one directory, but for those in PARSED."""
    put_images_in(tmp_path)
    put_files_of(path, tmp_path)
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
            script = tmp_path / program if program in files_of(path) else ROOT / program
            done = subprocess.run([sys.executable, script, *words], cwd=tmp_path)
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
    assert (ROOT / words[0]).is_file() or any(words[0] in files_of(path) for path in DOCUMENTS)


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


@pytest.mark.parametrize("kind", ["losses", "models", "data", "layers"])
def test_the_table_of_a_kind_says_what_lipcert_list_says(kind: str) -> None:
    from lipcert.commands.work.listing import listing

    text = "\n".join(path.read_text() for path in DOCUMENTS)
    (table,) = re.findall(rf"<!-- registry: {kind} -->\n(.*?)<!-- /registry -->", text, re.DOTALL)
    listed = {row[0]: row[1] for row in listing(kind)[0].cells}
    rows = [line.removeprefix("| `").split(" | ") for line in table.splitlines()[2:]]
    assert len(rows) > 5
    for name, words, *_ in rows:
        assert listed.pop(name.rstrip("`")).startswith(words.replace("\\|", "|"))
    if kind == "layers":  # the table is about lipcert's own
        listed = {name: words for name, words in listed.items() if hasattr(lipcert.nn, name)}
    assert listed == {}


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


VERDICTS = re.compile(r"<!-- verdicts.*?-->\n(.*?)<!-- /verdicts -->", re.DOTALL)


def verdict_cells() -> list[tuple[str, str, str]]:
    """Page, claim and verdict of every row of every table of verdicts."""
    found = []
    for path in DOCUMENTS:
        for table in VERDICTS.findall(path.read_text()):
            titles, _, *lines = [
                [cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()
            ]
            claim = titles.index("claim" if "claim" in titles else "claim of the paper")
            verdict = titles.index("verdict")
            found += [
                (path.name, row[claim], re.sub(r"\[(.*)\]\(.*\)", r"\1", row[verdict])) for row in lines
            ]
    return found


def test_the_same_claim_has_the_same_verdict_wherever_it_stands() -> None:
    words: dict[str, set[str]] = {}
    cells = verdict_cells()
    for _, claim, word in cells:
        words.setdefault(claim, set()).add(word)
    assert len(cells) > 1.5 * len(words) > 50  # most claims stand twice on the page
    assert {claim: found for claim, found in words.items() if len(found) > 1} == {}


def test_no_page_has_a_verdict_of_its_own() -> None:
    from lipcert.paper.ledger import SETTINGS
    from lipcert.paper.verdict import TRUE_BY_DEFINITION, Word

    assert {word for *_, word in verdict_cells()} <= {*Word, TRUE_BY_DEFINITION, SETTINGS}
    page = (ROOT / "docs" / "reproduction-tables.md").read_text()
    assert page.index("<!-- verdicts -->") < page.index("\n## ")  # all of them before the details
    by_hand = VERDICTS.sub("", page)
    assert not re.search(r"\| (verdict|holds) \|", by_hand)
    assert "depends on GloRo's schedule" not in by_hand


def test_rows_older_than_their_definition_are_marked() -> None:
    from lipcert.paper import REPRODUCTIONS
    from lipcert.paper.results import Results

    pages = "".join(
        (ROOT / "docs" / f"{name}.md").read_text() for name in ("reproduction-tables", "results-tables")
    )
    for name in REPRODUCTIONS:
        path = ROOT / "results" / f"{name}.json"
        if REPRODUCTIONS.create(name).earlier is None or not path.exists():
            continue
        results = Results.read(path)
        note = REPRODUCTIONS.create(name).older(results.date)
        block = re.search(rf"<!-- results: {name}(?: [^>]*)? -->.*?<!-- /results -->", pages, re.DOTALL)
        assert block
        assert bool(note) == ("Older than today's definition" in block[0])
        assert note in block[0]


def test_the_first_page_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def recorded_ratio(name: str, *cells: str) -> float:
    """The ratio in the row of results/NAME.json that has these cells."""
    found = json.loads((ROOT / "results" / f"{name}.json").read_text())
    (row,) = [row for row in found["table"] if set(cells) <= set(row)]
    return float(row[found["titles"].index("ratio")].split(" ")[0])


def test_costs_that_the_page_on_costs_sums_up_are_those_recorded() -> None:
    text = " ".join((ROOT / "docs" / "benchmarks.md").read_text().split())
    step = recorded_ratio("step-4c3f", "engine, CLL", "plain")
    moons = recorded_ratio("moons-step", "moons-cll", "plain")
    stack = recorded_ratio("moons-step", "moons-cll, nine seeds stacked", "plain")
    assert f"takes {step:.2f} of the time of a plain eager loop" in text
    assert f"a single two-moons MLP takes {moons:.2f}" in text
    assert f"cost as much as {stack:.1f} plain ones" in text
    models = ("4C3F", "4C3F, N = 1000, D = 2048")
    certificates = [recorded_ratio("certify", model, "certify, float64") for model in models]
    assert f"at most {max(certificates):.2f} float64 predictions" in text


def test_the_page_on_architecture_says_what_every_part_owns() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    owners = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    named = {name for cell in owners for name in re.findall(r"`([\w/]+)`", cell)}
    package = ROOT / "src" / "lipcert"
    parts = {path.stem for path in package.glob("[!_]*.py")} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }
    assert parts - named == {"cli"}  # it only mounts commands


def test_every_file_that_the_page_on_architecture_names_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = {name for name in re.findall(r"`([a-z_0-9/.]+)`", text) if "/" in name or name.endswith(".py")}
    assert len(named) > 30
    package = ROOT / "src" / "lipcert"
    assert [n for n in sorted(named) if not ((ROOT / n).exists() or any(package.rglob(n.rstrip("/"))))] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target
