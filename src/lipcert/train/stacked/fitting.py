"""Train several models of one architecture in one go."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from lightning_fabric import Fabric

from lipcert.errors import TrainingError
from lipcert.runs import Run
from lipcert.train.hardware import Hardware
from lipcert.train.interrupt import Interrupt
from lipcert.train.loop import advance_to, monitored
from lipcert.train.plan import Plan
from lipcert.train.stacked.checks import check_stack
from lipcert.train.stacked.stack import FailedTrainingsError, Stack
from lipcert.train.state import Training


def fit_stack(
    plans: Sequence[Plan],
    runs: Sequence[Run],
    fabric: Fabric | None = None,
    conclude: Callable[[int, float], None] = lambda index, seconds: None,
    lines: bool = False,
) -> list[float]:
    """Train several models of one architecture in one go, each as `fit` would; seconds spent on each.

    `conclude(index, seconds)` is called for each that is finished, before the failure of another is raised.
    A terminal shows a bar; elsewhere `lines` prints one line per epoch, about the first of them.
    """
    check_stack(plans)
    fabric = fabric or Hardware(accelerator="cpu").launch()
    trainings = [Training(plan, run, fabric) for plan, run in zip(plans, runs, strict=True)]
    failures = _train(trainings, lines)
    for index, training in enumerate(trainings):
        if training not in failures:
            conclude(index, training.deliver())
    for failure in failures.values():
        raise failure
    return [training.seconds for training in trainings]


def _train(trainings: Sequence[Training], lines: bool) -> dict[Training, TrainingError]:
    """Train all to their end but those that fail, which are returned; one bar stands for all."""
    failures: dict[Training, TrainingError] = {}
    with contextlib.ExitStack() as monitors, Interrupt() as interrupt:
        for training in trainings:
            monitors.enter_context(monitored(training, training is trainings[0], lines))
        while left := [t for t in trainings if t.step < t.plan.total_steps and t not in failures]:
            # Killed between two checkpoints they have not come equally far: the last catch up first.
            step = min(t.step for t in left)
            behind = [t for t in left if t.step == step]
            until = min((t.step for t in left if t.step > step), default=behind[0].plan.total_steps)
            stack = Stack(behind)
            try:
                advance_to(until, stack, interrupt)
            except FailedTrainingsError as failed:
                failures |= failed.failures
            stack.close()
    return failures
