"""The words of commands: lines for the shell, labels of figures, constants explained, empty splits."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import yaml

from lipcert.commands.work.listing import listing
from lipcert.recipes import read_recipe
from lipcert.report.figure import labelled, new_figure, write_figure

Cli = Callable[..., tuple[int, str, str]]

SMOKE = ["train", "moons-cll", "--budget", "smoke", "--set", "train.epochs=1"]


def next_line(out: str) -> list[str]:
    (line,) = [line for line in out.splitlines() if line.startswith("next: ")]
    return shlex.split(line.removeprefix("next: "))


def test_next_lines_can_be_typed_and_smoke_figures_say_so(cli: Cli) -> None:
    place = "mine & größe/a run"
    status, out, err = cli(*SMOKE, "--output", place)
    assert status == 0, err
    assert "smoke budget" in out
    assert "wall-clock time of the training" in out
    assert next_line(out) == ["lipcert", "inspect", place]
    assert yaml.safe_load(Path(place, "recipe.yaml").read_text(encoding="utf-8"))["budget"] == "smoke"
    status, out, err = cli("certify", place)
    assert status == 0, err
    assert "smoke budget" in out
    assert next_line(out) == ["lipcert", "verify", f"{place}/certificate-test.json", place]
    assert cli(*next_line(out)[1:])[0] == 0


def test_a_full_budget_is_not_labelled() -> None:
    assert read_recipe("moons-cll").budget is None
    assert "budget" not in read_recipe("moons-cll").model_dump(mode="json")
    assert read_recipe("moons-cll", "smoke").budget == "smoke"


def test_a_run_of_before_goes_on_although_it_names_no_budget(cli: Cli) -> None:
    assert cli(*SMOKE, "--output", "run")[0] == 0
    file = Path("run/recipe.yaml")
    file.write_text(file.read_text(encoding="utf-8").replace("budget: smoke\n", ""), encoding="utf-8")
    status, _, err = cli(*SMOKE, "--output", "run", "--resume")
    assert status == 0, err


def test_a_label_is_written_into_pictures(tmp_path: Path) -> None:
    figure, _ = new_figure((2.0, 2.0))
    plain = write_figure(figure, tmp_path / "plain.svg").read_text(encoding="utf-8")
    with labelled("smoke budget"):
        said = write_figure(figure, tmp_path / "said.svg").read_text(encoding="utf-8")
    assert "smoke budget" in said
    assert "smoke budget" not in plain
    assert "smoke budget" not in write_figure(figure, tmp_path / "after.svg").read_text(encoding="utf-8")


def test_the_papers_figures_are_called_the_papers() -> None:
    (table,) = listing("recipes")
    said = dict(table.cells)
    assert said["cifar10-4c3f-cll"].startswith("in the paper: clean 77.6")
    assert all("paper" in text for text in said.values() if text.startswith("clean"))
    assert said["cifar10-frontier"].startswith("none printed")


def test_the_two_constants_are_explained(cli: Cli) -> None:
    status, out, err = cli("inspect", "moons-cll")
    assert status == 0, err
    assert "K bounds how fast all logits change together" in out
    assert "K_f ≤" in out
    status, certified, err = cli("certify", "moons-cll")
    assert status == 0, err
    assert "K_f bounds how fast a difference of two logits changes" in certified
    shown = out.rpartition("K_f ≤ ")[2].split()[0]
    assert f"K_f ≤ {shown} (proved)" in certified  # both are rounded up


def test_no_split_to_certify_is_refused_before_training(cli: Cli, tmp_path: Path) -> None:
    status, _, err = cli(*SMOKE, "--set", "certify.splits=[]")
    assert (status, list(tmp_path.iterdir())) == (2, [])
    said = "certify.splits: expected at least one of train, val, test to certify, got []"
    assert err == f"lipcert: moons-cll: {said}\n"
