"""A command loads every split once, and validates its recipe once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

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


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Splits by name, and `recipe`, as often as they were loaded and validated."""
    found: Counter[str] = Counter()
    create, check = DATASETS.create, Recipe.check

    def counted_create(name: str, **arguments: Any) -> Any:
        found[arguments["split"]] += 1
        return create(name, **arguments)

    def counted_check(recipe: Recipe) -> None:
        found["recipe"] += 1
        check(recipe)

    monkeypatch.setattr(DATASETS, "create", counted_create)
    monkeypatch.setattr(Recipe, "check", counted_check)
    return found


def test_train(cli: Cli, counts: Counter[str]) -> None:
    settings = [part for setting in SMALL for part in ("--set", setting)]
    assert cli("train", "moons-cll", "--budget", "smoke", *settings)[0] == 0
    assert counts == {"recipe": 1, "train": 1, "val": 1}


def test_train_a_stack(cli: Cli, counts: Counter[str]) -> None:
    settings = [part for setting in SMALL for part in ("--set", setting)]
    assert cli("train", "moons-cll", "--budget", "smoke", *settings, "--stack", "seed=1,2")[0] == 0
    assert counts == {"recipe": counts["recipe"], "train": 1, "val": 1}
    assert counts["recipe"] <= 3  # the recipe, and each of the two


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["certify", "RUN", "--split", "val"], {"recipe": 1, "val": 1}),
        (["verify", "RUN"], {"recipe": 1, "train": 1, "val": 1}),
        (["attack", "RUN", "--split", "val", "--budget", "smoke"], {"recipe": 1, "val": 1}),
        (["tightness", "RUN", "--budget", "smoke"], {"recipe": 1, "train": 1}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_other_commands(
    command: list[str], expected: dict[str, int], run: str, cli: Cli, counts: Counter[str]
) -> None:
    assert cli(*(run if part == "RUN" else part for part in command))[0] == 0
    assert counts == expected


def test_predict_needs_neither(cli: Cli, counts: Counter[str], tmp_path: Path) -> None:
    card = ModelCard("4c3f", 3, (3, 8, 8), {"width": 0.125})
    save(card.build(), card, tmp_path / "model.safetensors")
    Image.new("RGB", (8, 8)).save(tmp_path / "photo.png")
    assert cli("predict", "model.safetensors", "photo.png")[0] == 0
    assert counts == {}
