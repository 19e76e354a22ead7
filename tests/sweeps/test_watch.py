"""The watch over a sweep: what it says of finished, failed and coming trainings."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lipcert.recipes import read_recipe
from lipcert.runs.metrics import Metrics
from lipcert.sweeps.trial import Trial
from lipcert.sweeps.watch import Watch


def test_a_line_says_how_many_are_finished_and_failed_and_how_long_the_rest_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = [Trial(tmp_path / str(i), read_recipe("moons-cll", None, ["train.epochs=10"])) for i in range(4)]
    now = time.monotonic()
    monkeypatch.setattr("lipcert.sweeps.watch.time.monotonic", lambda: now)
    with Watch(trials, trials[1:]) as watch:  # the first was there before
        now += 60
        for trial, epoch in ((trials[2], 4), (trials[3], 6)):
            trial.path.mkdir()
            trial.run.metrics_file.write_text(Metrics(epoch, epoch, 0.5, 0.9, 1.0, 1.0).line)
        watch.look()
        watch.ended((trials[1],), {trials[1]: "no memory"})
        watch.ended((trials[2],), {})
        watch.ended((trials[3],), {})
    assert capsys.readouterr().err.splitlines() == [
        # 20 of 30 epochs took a minute
        "1 of 4 finished, 1 failed, about 0:00:30 left: 1 failed: no memory",
        "2 of 4 finished, 1 failed, about 0:00:09 left: 2 finished",
        "3 of 4 finished, 1 failed: 3 finished",
    ]


def test_the_table_shows_how_far_each_training_is(tmp_path: Path) -> None:
    trials = [Trial(tmp_path / str(i), read_recipe("moons-cll", None, ["train.epochs=8"])) for i in range(2)]
    with Watch(trials, trials) as watch:
        trials[0].path.mkdir()
        trials[0].run.metrics_file.write_text(Metrics(2, 2, 0.5, 0.9, 1.0, 1.0).line)
        watch.look()
        (row,) = watch.table().cells
    assert row == ["0", "━" * 6 + "─" * 18, "2/8", "0.500", "–"]
