"""The training loop: steps, ends of epochs, interruptions. Models, losses and data are known by contract."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Protocol

import torch
from lightning_fabric import Fabric

from lipcert.errors import InterruptedRunError
from lipcert.runs import Run
from lipcert.train.hardware import Hardware
from lipcert.train.interrupt import Interrupt
from lipcert.train.monitor import Monitor
from lipcert.train.plan import Plan
from lipcert.train.stacked.checks import is_stackable
from lipcert.train.stacked.stack import Stack
from lipcert.train.state import Training
from lipcert.train.step import Single

# Steps after which several processes check whether one was interrupted.
_ASK_EVERY = 20


def fit(plan: Plan, run: Run, fabric: Fabric | None = None, bar: bool = True, lines: bool = False) -> float:
    """Train `plan.model` in place, from the run's last checkpoint if it has one; seconds spent in all.

    A terminal shows a bar; elsewhere `lines` prints one line per epoch.
    """
    training = Training(plan, run, fabric or Hardware(accelerator="cpu").launch())
    with monitored(training, bar, lines), Interrupt() as interrupt:
        steps = steps_of(training)
        advance_to(plan.total_steps, steps, interrupt)
        steps.close()
    return training.deliver()


class Steps(Protocol):
    """Makes the steps of a training, and does with it what comes between them."""

    training: Training

    def advance(self) -> None:
        """Make one optimiser step."""

    def end_epoch(self, seconds: float) -> None:
        """Note the epoch that has just ended, and the seconds since the last note."""

    def save(self, seconds: float) -> None:
        """Save the state in the middle of an epoch, and note the seconds since the last note."""

    def hand_out(self) -> None:
        """Give the training what the steps keep for it."""

    def close(self) -> None:
        """Give it back for good."""


def steps_of(training: Training) -> Steps:
    """Return the steps of a training; the quick ones of stacks where they can be had."""
    return Stack([training]) if is_stackable(training) else Single(training)


def advance_to(last: int, steps: Steps, interrupt: Interrupt) -> None:
    """Make steps up to the last one, or until an interruption; then the state is saved."""
    it, clock = steps.training, _Clock()
    while it.step < last:
        steps.advance()
        if it.step % it.plan.steps_per_epoch == 0:
            steps.end_epoch(clock.lap())
        if _asked_to_stop(it, interrupt):
            steps.save(clock.lap())
            raise InterruptedRunError(
                f"{it.run.path}: interrupted after step {it.step}; the state is saved, continue with --resume"
            )


@contextlib.contextmanager
def monitored(training: Training, bar: bool = True, lines: bool = False) -> Iterator[None]:
    """Write the metrics of a training as it goes; of several processes the first does."""
    if not training.fabric.is_global_zero:
        yield
        return
    plan, step = training.plan, training.step
    done = step / plan.steps_per_epoch
    with Monitor(training.run, plan.epochs, step, done, bar, lines) as training.monitor:
        yield


class _Clock:
    """Seconds since the last lap."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def lap(self) -> float:
        start, self._start = self._start, time.perf_counter()
        return self._start - start


def _asked_to_stop(it: Training, interrupt: Interrupt) -> bool:
    """Return whether to stop; all processes stop after the same step."""
    if it.shard.count == 1:
        return interrupt.requested
    if it.step % _ASK_EVERY and it.step % it.plan.steps_per_epoch:
        return False
    requested = torch.tensor(float(interrupt.requested), device=it.fabric.device)
    return bool(it.shard.total(requested))
