"""Reproductions at their smoke budget, in real processes: figures, results, interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import matplotlib.image
import pytest

from lipcert.reproduce import REPRODUCTIONS, carry_out
from lipcert.sweeps import LocalCrew
from lipcert.train import RunDirectory


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_every_reproduction_draws_and_writes_its_results(name: str, tmp_path: Path) -> None:
    report = carry_out(name, tmp_path, crew=LocalCrew(2), budget="smoke")
    picture = matplotlib.image.imread(tmp_path / f"{name}.png")
    assert min(picture.shape[:2]) > 300
    assert picture.std() > 0.05  # something is drawn
    assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    results = json.loads((tmp_path / "results.json").read_text())
    assert [row["recipe"] for row in results["rows"]] == list(REPRODUCTIONS[name].recipes)
    assert results["command"] == f"lipcert reproduce {name} --budget smoke"
    assert results["epochs"] == 3
    assert all(0 <= row["train"]["cra"] <= row["train"]["clean"] <= 1 for row in results["rows"])
    assert report.table.row_count == len(results["rows"])


def test_finished_trainings_are_kept(tmp_path: Path) -> None:
    carry_out("moons-demo", tmp_path, crew=LocalCrew(), budget="smoke")
    model = tmp_path / "moons-cll-seed1" / "model.safetensors"
    before = model.stat().st_mtime_ns
    carry_out("moons-demo", tmp_path, crew=LocalCrew(), budget="smoke")
    assert model.stat().st_mtime_ns == before


def test_ctrl_c_stops_the_trainings_and_the_same_command_goes_on(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "lipcert.cli",
        "reproduce",
        "moons-demo",
        "--output",
        str(tmp_path / "out"),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    runs = [RunDirectory(tmp_path / "out" / f"moons-{loss}-seed1") for loss in ("cll", "gloro")]
    while not all(run.read_metrics() for run in runs) and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on" in said
    assert "Traceback" not in said
    assert all(run.checkpoint.exists() for run in runs)
    time.sleep(0.5)
    sizes = [run.metrics.stat().st_size for run in runs]
    time.sleep(1.0)
    assert [run.metrics.stat().st_size for run in runs] == sizes  # nothing trains on in the background


def test_a_failing_training_is_reported(tmp_path: Path) -> None:
    (tmp_path / "moons-cll-seed1").mkdir()
    (tmp_path / "moons-cll-seed1" / "other.txt").write_text("in the way")
    command = [sys.executable, "-m", "lipcert.cli", "reproduce", "moons-demo", "--budget", "smoke"]
    done = subprocess.run(
        [*command, "--output", str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert done.returncode == 2
    assert "moons-cll-seed1" in done.stderr
    assert "holds another run or other files" in done.stderr
    assert "Traceback" not in done.stderr
