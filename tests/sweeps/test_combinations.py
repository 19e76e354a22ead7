"""`lipcert sweep`: the grid, its table, and one line for what is wrong."""

from __future__ import annotations

import csv
import statistics
from pathlib import Path

import pytest

from lipcert.errors import InputError
from lipcert.runs.measures import cra
from lipcert.sweeps import Sweep, lay_out, read_sweep
from lipcert.sweeps.combinations import check_place, overruled
from lipcert.sweeps.findings import rows_of
from lipcert.sweeps.summary import best_of, over_seeds
from tests.sweeps.here import CrewHere


def test_a_grid_ends_in_one_table_and_the_best(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lipcert.commands.work.sweep_run.LocalCrew", CrewHere)
    out = tmp_path / "sweep"
    grid = ["--over", "loss.eps=0.1,0.15", "--over", "seed=1..2", "--over", "optimizer.lr=1e-3,1e30"]
    command = ["sweep", "moons-cll", "--budget", "smoke", *grid, "--output", str(out), "--jobs", "2"]
    status, printed, error = cli(*command)
    assert status == 1  # a rate of 1e30 fails, the others do not
    assert "4 of 8 failed" in error
    assert "best by validation: loss.eps=" in printed
    with (out / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] == "finished" for row in rows] == [True, False] * 4
    assert "the loss became nan" in rows[1]["status"]
    assert 0 <= float(rows[0]["val CRA 0.15"]) <= float(rows[0]["val clean"]) <= 1
    # A report finds it again, and sums it up alike.
    sweep = read_sweep(out)
    summary = over_seeds(rows_of(sweep))
    assert [(one.values["loss.eps"], len(one.runs)) for one in summary] == [("0.1", 2), ("0.15", 2)]
    means = [statistics.fmean(cra("val", 0.15).numbers(one.runs)) for one in summary]
    assert best_of(summary) is summary[means.index(max(means))]
    before = (out / rows[0]["run"].rpartition("/")[2] / "model.safetensors").stat().st_mtime_ns
    assert cli(*command)[0] == 1
    assert (out / rows[0]["run"].rpartition("/")[2] / "model.safetensors").stat().st_mtime_ns == before


def test_values_in_brackets_are_one_value(tmp_path: Path) -> None:
    ramp = "schedule.loss.eps={name: ramp, first: 0.1, until: 0.5},null"
    sweep = lay_out("moons-cll", "smoke", [], [ramp], tmp_path)
    assert [values for _, values in sweep.trials] == [("{name: ramp, first: 0.1, until: 0.5}",), ("null",)]
    with pytest.raises(InputError, match="--over"):
        lay_out("moons-cll", "smoke", [], [], tmp_path)


def test_trials_that_have_not_begun_are_part_of_a_sweep(tmp_path: Path) -> None:
    laid_out = lay_out("moons-cll", "smoke", [], ["seed=1..3"], tmp_path / "out")
    laid_out.write("lipcert sweep")
    begun, _ = laid_out.trials[0]
    begun.run.start(begun.tree, resume=False, overwrite=False)
    sweep = read_sweep(tmp_path / "out")
    assert [values for _, values in sweep.trials] == [("1",)]
    assert [values for _, values in sweep.unbegun] == [("2",), ("3",)]
    statuses = [(row.values["seed"], row.status) for row in rows_of(sweep)]
    assert statuses == [("1", "not finished, 0 of 3 epochs"), ("2", "not begun"), ("3", "not begun")]


def test_a_directory_holds_one_sweep_that_may_grow(
    cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lipcert.commands.work.sweep_run.LocalCrew", CrewHere)

    def laid_out(*axes: str, recipe: str = "moons-cll") -> Sweep:
        return lay_out(recipe, "smoke", [], axes, tmp_path / "out")

    laid_out("loss.eps=0.1,0.2", "seed=1,2").write("lipcert sweep")
    before = (tmp_path / "out" / "sweep.json").read_bytes()
    check_place(laid_out("loss.eps=0.1,0.2", "seed=1,2"))
    check_place(laid_out("loss.eps=0.1,0.15,0.2", "seed=1..9"))
    others = [
        laid_out("seed=1,2"),
        laid_out("seed=1,2", "loss.eps=0.1,0.2"),
        laid_out("loss.eps=0.1,0.2", "seed=2,3"),
        laid_out("loss.eps=0.1,0.2", "seed=1,2", recipe="moons-gloro"),
    ]
    for other in others:
        with pytest.raises(InputError, match=r"holds another sweep, 4 trainings of moons-cll .*--output"):
            check_place(other)
    command = ["sweep", "moons-cll", "--budget", "smoke", "--over", "seed=1", "--output", "out"]
    status, _, error = cli(*command)
    assert status == 2
    assert "4 trainings of moons-cll over loss.eps, seed; --output" in error
    assert error.count("\n") == 1
    assert (tmp_path / "out" / "sweep.json").read_bytes() == before
    (tmp_path / "out" / "sweep.csv").write_text("of the other\n")
    assert cli(*command, "--overwrite", "--jobs", "1")[0] == 0
    assert read_sweep(tmp_path / "out").keys == ("seed",)
    assert "of the other" not in (tmp_path / "out" / "sweep.csv").read_text()


SLACK = "loss.slack=0.01,0.1"
END = "schedule.loss.slack.end=1e-12,1e-6"
RAMP = "schedule.loss.slack={name: ramp, first: 0.1}"


@pytest.mark.parametrize(
    ("recipe", "settings", "axes", "warned"),
    [
        ("moons-cll", [], [SLACK], {"loss.slack": 1e-12}),
        ("moons-cll", ["schedule.loss.slack={name: linear, end: 1e-12}"], [SLACK], {"loss.slack": 1e-12}),
        ("moons-cll", ["schedule.loss.slack=null"], [SLACK], {}),
        ("moons-cll", [], [SLACK, "schedule.loss.slack=null"], {}),
        ("moons-cll", [], ["loss.slack=0.1", END], {}),
        ("moons-cll", [RAMP], [SLACK], {}),  # up to each value
        ("moons-cll", [RAMP], ["loss.slack=1e-12,1e-11"], {}),
        ("moons-cll", [], ["loss.eps=0.1,0.2"], {}),
        ("moons-cll", ["schedule.optimizer.lr={name: cosine}"], ["optimizer.lr=1e-3,1e-2"], {}),
    ],
)
def test_values_that_a_schedule_makes_alike_are_found(
    recipe: str, settings: list[str], axes: list[str], warned: dict[str, float], tmp_path: Path
) -> None:
    assert overruled(lay_out(recipe, "smoke", settings, axes, tmp_path)) == pytest.approx(
        warned, rel=1e-3, abs=0
    )


def test_a_sweep_that_a_schedule_overrules_is_warned_of(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lipcert.commands.work.sweep_run.run_trials", lambda *_: {})
    status, _, error = cli("sweep", "moons-cll", "--over", SLACK, "--over", "seed=1..2")
    assert status == 0
    assert error.count("\n") == 1
    assert "--over loss.slack: the recipe's schedule takes it to 1e-12" in error
    assert "--set schedule.loss.slack=null" in error
