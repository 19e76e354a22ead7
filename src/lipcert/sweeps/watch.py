"""A running sweep: a live table on a terminal, one line per training elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from lipcert.sweeps.trial import Job, Trial
from lipcert.tables.kinds import percent

# The lines of the live table: running trainings.
_SHOWN = 12


class Watch:
    """A view of the trainings through the metrics they write."""

    def __init__(self, trials: Sequence[Trial], missing: Sequence[Trial]) -> None:
        self._total = len(trials)
        self._epochs = dict.fromkeys(missing, 0.0)  # the progress of each
        self._before = dict(self._epochs)
        self._open = list(missing)
        self._failed = 0
        self._began = time.monotonic()
        console = Console(stderr=True)
        self._live = Live(console=console, refresh_per_second=4) if console.is_terminal and missing else None

    def __enter__(self) -> Watch:
        for trial in self._open:
            self._before[trial] = self._epochs[trial] = _epoch_of(trial)
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.update(self._table())
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
            self._epochs[trial] = _epoch_of(trial)
        if self._live is not None:
            self._live.update(self._table())

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

    def _table(self) -> Table:
        table = Table(title=self._heading(), title_justify="left", box=None, padding=(0, 2, 0, 0))
        for title in ("training", "", "epochs", "loss", "CRA (val)"):
            table.add_column(title, justify="left" if title in ("training", "") else "right", no_wrap=True)
        under_way = [trial for trial in self._open if self._epochs[trial] or trial.run.recipe.is_file()]
        for trial in under_way[:_SHOWN]:
            last = trial.run.last_metrics()
            epochs = trial.recipe.train.epochs
            validation = None if last is None else last.validation
            table.add_row(
                trial.path.name,
                ProgressBar(total=epochs, completed=self._epochs[trial], width=24),
                f"{self._epochs[trial]:.0f}/{epochs}",
                "" if last is None else f"{last.loss:.3f}",
                "" if validation is None else percent(validation.val_cra_estimate),
            )
        return table


def _epoch_of(trial: Trial) -> float:
    last = trial.run.last_metrics()
    return 0.0 if last is None else float(last.epoch)
