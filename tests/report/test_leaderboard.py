"""The leaderboard of the models that come with the package."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lipcert.certificates.statement import read_certificate
from lipcert.models.model_names import model_place
from lipcert.models.trained import trained_models
from lipcert.recipes import read_recipe
from lipcert.report.leaderboard import _command, leaderboard, leaderboard_table


def test_every_packaged_model_is_on_it_with_the_numbers_of_its_certificate() -> None:
    entries = {entry.name: entry for of_data in leaderboard().values() for entry in of_data}
    assert sorted(entries) == trained_models()
    for name, entry in entries.items():
        split = list(read_certificate(model_place(name) / "certificate.json").splits.values())[-1]
        assert entry.clean == split.clean.value
        assert list(entry.certified.values()) == [row.value for row in split.certified]
    assert entries["cifar10-4c3f-cll"].parameters == 2_466_858


def test_the_most_certified_comes_first() -> None:
    for entries in leaderboard().values():
        first = [next(iter(entry.certified.values())) for entry in entries]
        assert first == sorted(first, reverse=True)


def test_what_is_not_known_is_a_dash_and_times_are_for_readers() -> None:
    (entry, *_) = leaderboard()["moons"]
    unknown = replace(entry, seconds=None, tightness=None, certified={0.15: 0.5})
    other = replace(entry, seconds=7200.0, threads=2, tightness=0.876, certified={0.3: 0.25})
    table = leaderboard_table("moons", [unknown, other, replace(other, seconds=5940.0, threads=1)])
    titles, lines = table.titles, table.cells
    assert titles[3:6] == ["clean", "0.15", "0.3"]
    assert [line[2] for line in lines] == ["–", "2.0 h, 2 threads", "99 min, 1 thread"]
    assert [line[4:7] for line in lines[:2]] == [["50.0", "–", "–"], ["–", "25.0", "88"]]


@pytest.mark.parametrize(
    ("settings", "budget", "command"),
    [
        ([], "cpu", "lipcert train cifar10-4c3f-cll --budget cpu"),
        (["seed=7", "train.threads=1"], None, "lipcert train cifar10-4c3f-cll --set seed=7"),
        (["loss.eps=0.3"], None, "lipcert train recipe.yaml"),
    ],
)
def test_the_command_is_one_that_trains_it(settings: list[str], budget: str | None, command: str) -> None:
    assert _command(read_recipe("cifar10-4c3f-cll", budget, settings)) == command
