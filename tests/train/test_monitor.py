"""The monitor of a training: which epochs TensorBoard gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn

from lipcert.runs.metrics import Metrics
from lipcert.train import fit, fit_stack, monitor
from tests.train.test_loop import plan, start


@pytest.mark.parametrize(
    ("points", "validate_every", "shown"),
    [(250, 0, [1, 2, 3, 4, 5, 6, 7]), (3, 0, [3, 6, 7]), (3, 4, [3, 4, 6, 7])],
)
def test_a_long_curve_has_fewer_points_and_always_the_last_and_the_validated(
    points: int, validate_every: int, shown: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "_POINTS", points)
    run = start(tmp_path / "run")
    fit(plan(epochs=7, validate_every=validate_every), run)
    board = EventAccumulator(str(run.tensorboard)).Reload()
    assert [event.step for event in board.Scalars("loss")] == [4 * epoch for epoch in shown]
    assert not {"epoch", "step"} & set(board.Tags()["scalars"])  # which the axis shows
    losses = {metrics.step: metrics.loss for metrics in run.metrics()}
    assert all(event.value == pytest.approx(losses[event.step]) for event in board.Scalars("loss"))


def test_a_log_has_one_line_per_epoch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit(plan(epochs=3, validate_every=2), start(tmp_path / "run"), lines=True)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == [f"epoch {n} of 3" for n in (1, 2, 3)]
    assert all("loss" in line and "accuracy" in line and "K_f" in line for line in lines)
    assert all("s wall-clock time" in line for line in lines)
    assert ["validation accuracy" in line for line in lines] == [False, True, False]
    assert [line.rpartition(", ")[2].split()[0] for line in lines] == ["about", "about", "done"]


def test_a_resumed_training_counts_its_own_epochs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = start(tmp_path / "run")
    with monitor.Monitor(run, epochs=10, step=0, done=8.0, lines=True) as watched:
        watched._began -= 6.0
        watched.epoch(Metrics(9, 36, 0.5, 0.9, 2.0, 1.0))
    assert "6.0 s wall-clock time, about 6.0 s left" in capsys.readouterr().err


def test_python_callers_get_no_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit(plan(epochs=2), start(tmp_path / "run"))
    assert capsys.readouterr().err == ""


def test_a_stack_prints_one_line_per_epoch_for_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [start(tmp_path / name) for name in ("one", "two")]
    plans = [plan(epochs=2, seed=seed, model=nn.Sequential(nn.Linear(2, 2))) for seed in (1, 2)]
    fit_stack(plans, runs, lines=True)
    assert len(capsys.readouterr().err.splitlines()) == 2
