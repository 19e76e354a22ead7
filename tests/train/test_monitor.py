"""The monitor of a training: which epochs TensorBoard gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from lipcert.train import fit, monitor
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
    losses = {metrics.step: metrics.loss for metrics in run.metrics()}
    assert all(event.value == pytest.approx(losses[event.step]) for event in board.Scalars("loss"))
