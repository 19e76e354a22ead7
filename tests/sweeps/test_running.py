"""Trials, how they are shared out, and how a crew carries them out in real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lipcert.errors import InputError
from lipcert.recipes import read_recipe
from lipcert.runs import Run
from lipcert.sweeps import LocalCrew, Trial, run_trials
from lipcert.sweeps.trial import jobs_of


def trial(folder: Path, *settings: str, recipe: str = "moons-cll") -> Trial:
    name = ",".join([recipe, *settings]).replace("/", "_")
    return Trial(folder / name, read_recipe(recipe, "smoke", settings))


def wait_for(condition: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def test_mlps_become_stacks_one_a_process(tmp_path: Path) -> None:
    widths = ("-0.2", "", "-0.4", "-0.5")
    names = [f"moons-{loss}{width}" for loss in ("cll", "gloro") for width in widths]
    eight = [trial(tmp_path, "seed=1", recipe=name) for name in names]
    assert [len(job) for job in jobs_of(eight, processes=2)] == [4, 4]
    assert [len(job) for job in jobs_of(eight[:-1], processes=2)] == [4, 3]  # what is left of them
    assert len(jobs_of(eight, processes=1)) == 1
    other = trial(tmp_path, "train.batch_size=50")
    assert sorted(len(job) for job in jobs_of([*eight, other], processes=1)) == [1, 8]
    soc = [
        trial(tmp_path, f"model.widths={widths}", recipe="moons-soc") for widths in ([10, 10], [10, 20, 10])
    ]
    assert len(jobs_of(soc, processes=1)) == 2  # no plain MLPs


@pytest.mark.slow
def test_one_that_fails_stops_nobody_and_the_finished_are_kept(tmp_path: Path) -> None:
    good = [trial(tmp_path, f"seed={seed}") for seed in (1, 2)]
    bad = trial(tmp_path, "optimizer.lr=1e30")
    missing = trial(tmp_path, "data.name=cifar10", "model.name=4c3f", "data.root=/nowhere", "data.val=10")
    failures = run_trials([bad, *good, missing], LocalCrew(2))
    assert set(failures) == {bad, missing}
    assert "the loss became nan" in failures[bad]
    assert "/nowhere" in failures[missing]
    before = [one.run.model.stat().st_mtime_ns for one in good]
    assert set(run_trials([bad, *good], LocalCrew(2))) == {bad}
    assert [one.run.model.stat().st_mtime_ns for one in good] == before
    assert all((one.run.figures / "curve.png").is_file() for one in good)


def test_a_stack_of_which_one_fails_keeps_the_others(tmp_path: Path) -> None:
    good, bad = trial(tmp_path, "seed=1"), trial(tmp_path, "seed=2", "loss.lam=1e38")
    assert set(run_trials([good, bad], LocalCrew(1))) == {bad}
    assert good.is_finished()


def test_a_place_that_is_taken_is_found_before_anything_starts(tmp_path: Path) -> None:
    first, second = trial(tmp_path, "seed=1"), trial(tmp_path, "seed=2")
    second.path.mkdir()
    (second.path / "other.txt").write_text("in the way")
    with pytest.raises(InputError, match="holds another run or other files"):
        run_trials([first, second], LocalCrew(1))
    assert not first.path.exists()
    with pytest.raises(InputError, match="two trainings"):
        run_trials([first, first], LocalCrew(1))
    with pytest.raises(InputError, match="--jobs"):
        LocalCrew(0)


@pytest.mark.slow
def test_overwriting_begins_anew(tmp_path: Path) -> None:
    one = trial(tmp_path, "seed=1")
    assert run_trials([one], LocalCrew(1)) == {}
    before = one.run.model.stat().st_mtime_ns
    assert run_trials([one], LocalCrew(1), overwrite=True) == {}
    assert one.run.model.stat().st_mtime_ns > before


def sweep_process(folder: Path, *flags: str) -> subprocess.Popen[str]:
    """A long sweep: two trainings at once."""
    command = [sys.executable, "-m", "lipcert.cli", "sweep", "moons-cll", "--budget", "smoke"]
    command += ["--set", "train.epochs=3000", "--over", "train.batch_size=100,50", "--output", str(folder)]
    return subprocess.Popen([*command, *flags], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def runs_in(folder: Path) -> list[Run]:
    return [Run(folder / f"train.batch_size={size}") for size in (100, 50)]


def resting(runs: list[Run]) -> bool:
    sizes = [run.metrics_file.stat().st_size for run in runs]
    time.sleep(1.0)
    return [run.metrics_file.stat().st_size for run in runs] == sizes


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_a_sweep_that_ends_takes_its_trainings_with_it(how: signal.Signals, tmp_path: Path) -> None:
    process, runs = sweep_process(tmp_path / "out"), runs_in(tmp_path / "out")
    wait_for(lambda: all(run.last_metrics() for run in runs) or process.poll() is not None)
    os.kill(process.pid, how)
    _, said = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "the same command goes on" in said
    assert "Traceback" not in said
    wait_for(lambda: resting(runs))  # nothing trains on in the background
    assert all(run.checkpoint.exists() for run in runs)
    assert not any(run.certificate.exists() for run in runs)
