"""The training loop: steps, ends of epochs, interruptions. Models, losses and data are known by contract."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence

import torch
from lightning_fabric import Fabric

from lipcert.errors import InterruptedRunError, TrainingError
from lipcert.runs import Run
from lipcert.train.hardware import Hardware
from lipcert.train.interrupt import Interrupt
from lipcert.train.monitor import Monitor
from lipcert.train.plan import Plan
from lipcert.train.stacked.stack import Stack, check_stack, is_stackable
from lipcert.train.state import Training
from lipcert.train.step import Single

# Steps after which several processes check whether one was interrupted.
_ASK_EVERY = 20


def fit(plan: Plan, run: Run, fabric: Fabric | None = None, bar: bool = True) -> float:
    """Train `plan.model` in place, from the run's last checkpoint if it has one; seconds spent in all."""
    fabric = fabric or Hardware(accelerator="cpu").launch()
    training = Training(plan, run, fabric)
    with _monitors([training], bar) as monitors, Interrupt() as interrupt:
        steps = Stack([training]) if is_stackable(training) else Single(training)
        for failure in _Loop(steps, monitors, interrupt).until(plan.total_steps).values():
            raise failure
    return _deliver(training)


def fit_stack(
    plans: Sequence[Plan],
    runs: Sequence[Run],
    fabric: Fabric | None = None,
    conclude: Callable[[int, float], None] = lambda index, seconds: None,
) -> list[float]:
    """Train several models of one architecture at once, each as `fit` would; return the seconds of each.

    `conclude(index, seconds)` is called for each that is finished, before the failure of another is raised.
    """
    check_stack(plans)
    fabric = fabric or Hardware(accelerator="cpu").launch()
    trainings = [Training(plan, run, fabric) for plan, run in zip(plans, runs, strict=True)]
    failures: dict[Training, TrainingError] = {}
    with _monitors(trainings) as monitors, Interrupt() as interrupt:
        while left := [t for t in trainings if t.step < t.plan.total_steps and t not in failures]:
            # Trainings killed between two checkpoints are at different steps: those behind catch up first.
            step = min(t.step for t in left)
            behind = [t for t in left if t.step == step]
            until = min((t.step for t in left if t.step > step), default=behind[0].plan.total_steps)
            failures |= _Loop(Stack(behind), monitors, interrupt).until(until)
    for index, training in enumerate(trainings):
        if training not in failures:
            conclude(index, _deliver(training))
    for failure in failures.values():
        raise failure
    return [training.seconds for training in trainings]


Monitors = dict[Training, Monitor]


class _Loop:
    """The steps of a training, and the work between them."""

    def __init__(self, steps: Single | Stack, monitors: Monitors, interrupt: Interrupt) -> None:
        self._steps, self._monitors, self._interrupt = steps, monitors, interrupt
        self._first = steps.trainings[0]
        self._clock = time.perf_counter()

    def until(self, last: int) -> dict[Training, TrainingError]:
        """Go on up to this step, or to the end of an epoch in which a training failed."""
        failures: dict[Training, TrainingError] = {}
        while self._first.step < last and not failures:
            self._steps.advance()
            if self._first.step % self._first.plan.steps_per_epoch == 0:
                failures = self._end_epoch()
            if self._asked_to_stop():
                self._stop()
        self._steps.close()
        return failures

    def _end_epoch(self) -> dict[Training, TrainingError]:
        self._tick()
        sums = self._steps.epochs()
        if any(t.validates or t.saves for t in self._steps.trainings):
            self._steps.before_saving()
        failures = {}
        for training, epoch in zip(self._steps.trainings, sums, strict=True):
            try:
                metrics = training.finish_epoch(epoch)
                if training in self._monitors:
                    self._monitors[training].epoch(metrics)
                if training.saves:
                    training.save()
            except TrainingError as error:
                failures[training] = error
        if any(t.validates for t in self._steps.trainings):
            self._steps.after_validation()
        return failures

    def _tick(self) -> None:
        """Divide the elapsed time equally among the trainings of a stack."""
        now = time.perf_counter()
        for training in self._steps.trainings:
            training.seconds += (now - self._clock) / len(self._steps.trainings)
        self._clock = now

    def _asked_to_stop(self) -> bool:
        """Return whether to stop; all processes stop after the same step."""
        it = self._first
        if it.shard.count == 1:
            return self._interrupt.requested
        if it.step % _ASK_EVERY and it.step % it.plan.steps_per_epoch:
            return False
        requested = torch.tensor(float(self._interrupt.requested), device=it.fabric.device)
        return bool(it.shard.total(requested))

    def _stop(self) -> None:
        self._tick()
        self._steps.before_saving()
        failure = None
        for training in self._steps.trainings:
            try:
                training.check_finite(training.shard.total(training.losses).tolist())
                training.save()
            except TrainingError as error:
                failure = error
        raise failure or InterruptedRunError(
            f"{self._first.run.path}: interrupted after step {self._first.step}; the state is saved, "
            "continue with --resume"
        )


def _deliver(training: Training) -> float:
    if training.average is not None:
        training.average.deliver()
    return training.seconds


@contextlib.contextmanager
def _monitors(trainings: Sequence[Training], bar: bool = True) -> Iterator[Monitors]:
    """Yield a monitor per training, in the first process only; a single bar stands for a whole stack."""
    with contextlib.ExitStack() as stack:
        yield {
            t: stack.enter_context(Monitor(t.run, t.plan.epochs, t.step, bar=bar and t is trainings[0]))
            for t in trainings
            if t.fabric.is_global_zero
        }
