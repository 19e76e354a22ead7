"""A real Ray on this machine: the same sweep, and one whose worker is killed in the middle of a trial."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from lipcert.commands.work.sweep_run import crew_of
from lipcert.errors import InputError
from lipcert.sweeps import LocalCrew, complete, lay_out
from tests.sweeps.test_running import wait_for


def workers() -> list[int]:
    """Processes that carry out a job, by the title that Ray gives them."""
    found = subprocess.run(["pgrep", "-f", "^ray::.*carry_out"], capture_output=True, text=True)
    return [int(line) for line in found.stdout.split()]


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_its_trial_goes_on(tmp_path: Path) -> None:
    arguments = ["moons-cll", "--budget", "smoke", "--set", "train.epochs=120", "--over", "seed=1,2"]
    command = [sys.executable, "-m", "lipcert.cli", "sweep", *arguments, "--output", str(tmp_path / "ray")]
    process = subprocess.Popen(
        [*command, "--backend", "ray", "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    sweep = lay_out("moons-cll", "smoke", ["train.epochs=120"], ["seed=1,2"], tmp_path / "ray")
    (first, _), (second, _) = sweep.trials
    wait_for(lambda: first.run.checkpoint.is_file() or process.poll() is not None)
    os.kill(workers()[0], signal.SIGKILL)
    told, said = process.communicate(timeout=240)
    assert process.returncode == 0, said
    assert "2 of 2 finished" in said
    assert "sweep.csv" in told
    here = lay_out("moons-cll", "smoke", ["train.epochs=120"], ["seed=1,2"], tmp_path / "here")
    complete([trial for trial, _ in here.trials], LocalCrew(2))
    for (mine, _), theirs in zip(here.trials, (first, second), strict=True):
        one, other = load_file(mine.run.model), load_file(theirs.run.model)
        assert all(one[name].equal(other[name]) for name in one)  # bit for bit
        assert len(theirs.run.metrics()) == 120


def test_without_ray_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'lipcert\[ray\]'"):
        crew_of("ray", None, None)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:100000"])
def test_a_cluster_that_is_not_there_is_named(address: str) -> None:
    with pytest.raises(InputError, match=f"--address {address}: nobody answers"):
        crew_of("ray", address, None)
