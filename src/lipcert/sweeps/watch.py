"""A running sweep: a live table on a terminal, one line per training elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType

from rich.console import Console
from rich.live import Live

from lipcert.sweeps.trial import Job, Trial
from lipcert.tables import Column, Table
from lipcert.tables.kinds import LOSS, PERCENT, SETTING, TEXT
from lipcert.tables.terminal import fitting

# The lines of the live table: running trainings.
_SHOWN = 12
_BAR = 24  # characters


class Watch:
    """A view of the trainings through the metrics they write."""

    def __init__(self, trials: Sequence[Trial], missing: Sequence[Trial]) -> None:
        self._total = len(trials)
        self._epochs = dict.fromkeys(missing, 0.0)  # the progress of each
        self._before = dict(self._epochs)
        self._open = list(missing)
        self._failed = 0
        self._began = time.monotonic()
        self._console = console = Console(stderr=True)
        self._live = Live(console=console, refresh_per_second=4) if console.is_terminal and missing else None

    def __enter__(self) -> Watch:
        for trial in self._open:
            self._before[trial] = self._epochs[trial] = _progress(trial).epoch
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.update(fitting(self.table(), self._console.width))
            self._live.stop()

    def ended(self, job: Job, failures: Mapping[Trial, str]) -> None:
        """Record that trainings of this job are done or have failed."""
        for trial in job:
            self._open.remove(trial)
            self._epochs[trial] = trial.recipe.train.epochs
            self._failed += trial in failures
            if self._live is None:
                how = f"failed: {failures[trial]}" if trial in failures else "finished"
                print(f"{self._heading()}: {trial.path.name} {how}", file=sys.stderr, flush=True)

    def look(self) -> None:
        """Update the table."""
        for trial in self._open:
            self._epochs[trial] = _progress(trial).epoch
        if self._live is not None:
            self._live.update(fitting(self.table(), self._console.width))

    def _heading(self) -> str:
        done = self._total - len(self._open) - self._failed
        parts = [f"{done} of {self._total} finished"]
        parts += [f"{self._failed} failed"] if self._failed else []
        left = self._seconds_left()
        parts += [f"about {timedelta(seconds=round(left))} left"] if self._open and left else []
        return ", ".join(parts)

    def _seconds_left(self) -> float:
        """Estimate the remaining time, if coming epochs take as long as those since the start."""
        done = sum(self._epochs.values()) - sum(self._before.values())
        whole = sum(trial.recipe.train.epochs for trial in self._epochs)
        ahead = whole - sum(self._epochs.values())
        return (time.monotonic() - self._began) * ahead / done if done else 0.0

    def table(self) -> Table[Progress]:
        """Lay out the trainings under way, the first of them if there are many."""
        under_way = [trial for trial in self._open if self._epochs[trial] or trial.run.recipe.is_file()]
        return Table(_COLUMNS, list(map(_progress, under_way[:_SHOWN])), title=self._heading())


@dataclass(frozen=True)
class Progress:
    """The progress of one training; None before its first epoch and, for the CRA, its first validation."""

    name: str
    epoch: int
    epochs: int
    loss: float | None
    cra: float | None  # estimated, on the validation split

    @property
    def bar(self) -> str:
        """Draw the share of epochs that are done."""
        done = round(_BAR * self.epoch / self.epochs)
        return "━" * done + "─" * (_BAR - done)


def _progress(trial: Trial) -> Progress:
    last = trial.run.last_metrics()
    epochs = trial.recipe.train.epochs
    if last is None:
        return Progress(trial.path.name, 0, epochs, None, None)
    cra = last.validation.val_cra_estimate if last.validation else None
    return Progress(trial.path.name, last.epoch, epochs, last.loss, cra)


_COLUMNS: tuple[Column[Progress], ...] = (
    Column("training", TEXT, lambda row: row.name),
    Column("progress", TEXT, lambda row: row.bar),
    Column("epochs", SETTING, lambda row: f"{row.epoch}/{row.epochs}"),
    Column("loss", LOSS, lambda row: row.loss),
    Column("CRA val [%]", PERCENT, lambda row: row.cra),
)
