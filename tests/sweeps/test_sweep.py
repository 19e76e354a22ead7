"""`lipcert sweep`: the grid, its table, and one line for what is wrong."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from lipcert.errors import InputError
from lipcert.sweeps import lay_out, read_sweep
from lipcert.sweeps.findings import best_of, over_seeds, rows_of


def test_a_grid_ends_in_one_table_and_the_best(cli, tmp_path: Path) -> None:
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
    summary = over_seeds(rows_of(sweep), sweep.keys)
    assert [(row["loss.eps"], row["trainings"]) for row in summary] == [("0.1", 2), ("0.15", 2)]
    means = [row["val CRA 0.15"][0] for row in summary]
    assert best_of(summary) is summary[means.index(max(means))]
    before = (out / rows[0]["run"].rpartition("/")[2] / "model.safetensors").stat().st_mtime_ns
    assert cli(*command)[0] == 1
    assert (out / rows[0]["run"].rpartition("/")[2] / "model.safetensors").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--over", "loss.epsilon=1"], "loss.epsilon: unknown key"),
        (["--over", "loss.eps="], "expected KEY=VALUES"),
        (["--over", "loss.eps"], "expected KEY=VALUES"),
        (["--over", "seed=1,1"], "has a value twice"),
        (["--over", "seed=1", "--over", "seed=2"], "seed comes twice"),
        (["--over", "loss.eps=0.1,0.10"], "are the same training"),
        (["--over", "loss.eps=-1"], "loss.eps"),
        (["--over", "seed=1", "--backend", "slurm"], "expected local or ray"),
        (["--over", "seed=1", "--address", "there:1"], "is for --backend ray"),
        (["--over", "seed=1", "--jobs", "0"], "--jobs"),
        ([], "--over"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(flags: list[str], said: str, cli, tmp_path: Path) -> None:
    status, _, error = cli("sweep", "moons-cll", "--budget", "smoke", *flags)
    assert status == 2
    assert said in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_values_in_brackets_are_one_value(tmp_path: Path) -> None:
    ramp = "schedule.loss.eps={name: ramp, first: 0.1, until: 0.5},null"
    sweep = lay_out("moons-cll", "smoke", [], [ramp], tmp_path)
    assert [values for _, values in sweep.trials] == [("{name: ramp, first: 0.1, until: 0.5}",), ("null",)]
    with pytest.raises(InputError, match="--over"):
        lay_out("moons-cll", "smoke", [], [], tmp_path)
