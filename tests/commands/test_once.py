"""A command loads every split once, reads every certificate once, and validates its recipe once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lipcert.certificates import statement
from lipcert.commands.support.sweep_worker import carry_out
from lipcert.data import DATASETS
from lipcert.models import ModelCard, save
from lipcert.recipes import Recipe, execute, read_recipe

SMALL = ["certify.tightness=smoke", "train.validate_every=1", "model.widths=[4]", "data.val=100"]

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("once") / "run"
    execute(read_recipe("moons-cll", "smoke", SMALL), place)
    return str(place)


class Counts(Counter[str]):
    """Counts, and what was there before: the same once more counts as `again`."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def note(self, what: str) -> None:
        if what in self.seen:
            self["again"] += 1
        self.seen.add(what)

    def clear(self) -> None:
        super().clear()
        self.seen.clear()


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Splits by name, `certificate` and `recipe`, as often as they were loaded, read and validated.

    `again` counts a recipe that was validated before, and the recipe.yaml of a run that was read before.
    """
    found = Counts()
    create, check, read = DATASETS.create, Recipe.check, statement.read_json
    read_text = Path.read_text

    def counted_create(name: str, **arguments: Any) -> Any:
        found[arguments["split"]] += 1
        return create(name, **arguments)

    def counted_check(recipe: Recipe) -> None:
        found["recipe"] += 1
        found.note(recipe.model_dump_json())
        check(recipe)

    def counted_read(path: Path, what: str) -> dict[str, Any]:
        found["certificate"] += 1
        return read(path, what)

    def counted_text(path: Path, *arguments: Any, **named: Any) -> str:
        if path.name == "recipe.yaml":
            found.note(str(path.resolve()))
        return read_text(path, *arguments, **named)

    monkeypatch.setattr(Path, "read_text", counted_text)
    monkeypatch.setattr(statement, "read_json", counted_read)
    monkeypatch.setattr(DATASETS, "create", counted_create)
    monkeypatch.setattr(Recipe, "check", counted_check)
    return found


def test_train(cli: Cli, counts: Counter[str]) -> None:
    settings = [part for setting in SMALL for part in ("--set", setting)]
    assert cli("train", "moons-cll", "--budget", "smoke", *settings)[0] == 0
    assert counts == {"recipe": 1, "train": 1, "val": 1, "certificate": 1}


def test_train_a_stack(cli: Cli, counts: Counter[str]) -> None:
    settings = [part for setting in SMALL for part in ("--set", setting)]
    assert cli("train", "moons-cll", "--budget", "smoke", *settings, "--stack", "seed=1,2")[0] == 0
    assert counts == {"recipe": 2, "train": 1, "val": 1, "certificate": 2}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["certify", "RUN", "--split", "val"], {"recipe": 1, "val": 1, "certificate": 1}),
        (["verify", "RUN"], {"recipe": 1, "train": 1, "val": 1, "certificate": 1}),
        (["attack", "RUN", "--split", "val", "--budget", "smoke"], {"recipe": 1, "val": 1, "certificate": 1}),
        (["tightness", "RUN", "--budget", "smoke"], {"recipe": 1, "train": 1, "certificate": 1}),
        (["export", "RUN", "model.onnx"], {"certificate": 1}),
        (["inspect", "RUN"], {"certificate": 1}),
        # The run's recipe, and the packaged one of its name, which says which model the paper's row has;
        # the page shows recipe.yaml as it was written.
        (["report", "RUN"], {"recipe": 2, "again": 1, "val": 1, "certificate": 1}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_other_commands(
    command: list[str], expected: dict[str, int], run: str, cli: Cli, counts: Counter[str]
) -> None:
    assert cli(*(run if part == "RUN" else part for part in command))[0] == 0
    assert counts == expected


def test_a_report_on_a_sweep_and_a_run_of_it(cli: Cli, counts: Counter[str]) -> None:
    over = [part for setting in SMALL for part in ("--set", setting)]
    assert (
        cli("sweep", "moons-cll", "--budget", "smoke", *over, "--over", "seed=1,2", "--output", "sweep")[0]
        == 0
    )
    # Each of the two; the name of the recipe is read unchecked, and their processes load the data.
    assert counts == {"recipe": 2, "certificate": 2}
    counts.clear()
    assert cli("report", "sweep", "sweep/seed=1")[0] == 0
    # The recipes of two runs and the packaged one; the page shows both files as they were written.
    assert counts == {"recipe": 3, "again": 2, "val": 1, "certificate": 2}


def test_the_process_of_a_sweep_validates_nothing_again(counts: Counter[str], tmp_path: Path) -> None:
    tree = read_recipe("moons-cll", "smoke", SMALL).model_dump(mode="json")
    counts.clear()
    carry_out({str(tmp_path / "run"): tree})
    assert counts == {"train": 1, "val": 1, "certificate": 1}


def test_reproduce(cli: Cli, counts: Counter[str]) -> None:
    settings = [part for setting in SMALL for part in ("--set", setting)]
    assert cli("reproduce", "moons-demo", "--budget", "smoke", *settings)[0] == 0
    # Two trainings on the same points, which are drawn; both full budgets, beside which their size is told.
    assert counts == {"recipe": 4, "train": 1, "certificate": 2}


def test_predict_needs_neither(cli: Cli, counts: Counter[str], tmp_path: Path) -> None:
    card = ModelCard("4c3f", 3, (3, 8, 8), {"width": 0.125})
    save(card.build(), card, tmp_path / "model.safetensors")
    Image.new("RGB", (8, 8)).save(tmp_path / "photo.png")
    assert cli("predict", "model.safetensors", "photo.png")[0] == 0
    assert counts == {}
