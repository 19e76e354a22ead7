"""The reports of a training: metrics.jsonl, TensorBoard, and a progress bar or lines of a log."""

from __future__ import annotations

import contextlib
import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lipcert.runs import Run
from lipcert.runs.metrics import Metrics
from lipcert.tables.kinds import CONSTANT, LOSS, percent
from lipcert.train.epoch_line import epoch_line
from lipcert.train.event_file import EventFile

# The points of a curve in TensorBoard. Writing them takes longer than a short epoch.
_POINTS = 250


class Monitor:
    """A monitor with one JSON object per epoch and one bar per run.

    Where stderr is not a terminal there is no bar; with `lines` there is one line per epoch instead.
    """

    def __init__(
        self, run: Run, epochs: int, step: int, done: float = 0.0, bar: bool = True, lines: bool = False
    ) -> None:
        self._epochs, self._before = epochs, done  # epochs in all, and those that were done before
        self._log = run.metrics_log(step)
        self._board = EventFile(run.tensorboard, step)
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[state]}"),
            console=console,
            disable=not bar or not console.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task(run.path.name, total=epochs, state="")
        self._lines = lines and bar and not console.is_terminal
        self._began = time.monotonic()

    def __enter__(self) -> Monitor:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
        # Where the disk is full, closing fails again: the first error is the one to report.
        with contextlib.suppress(OSError) if kind is not None else contextlib.nullcontext():
            self._log.close()
        with contextlib.suppress(OSError) if kind is not None else contextlib.nullcontext():
            self._board.close()

    def epoch(self, metrics: Metrics) -> None:
        """Write the metrics of a finished epoch."""
        self._log.append(metrics)
        if self._is_shown(metrics):
            numbers = {name: n for name, n in metrics.numbers.items() if name not in ("epoch", "step")}
            self._board.add(numbers, metrics.step)
        if self._lines:
            print(self._line(metrics), file=sys.stderr, flush=True)
        if self._progress.disable:
            return
        loss, k_f = LOSS.text(metrics.loss), CONSTANT.text(metrics.k_f)
        state = f"loss {loss}  accuracy {percent(metrics.accuracy)}  K_f {k_f}"
        self._progress.update(self._task, completed=metrics.epoch, state=state)

    def _line(self, metrics: Metrics) -> str:
        spent = time.monotonic() - self._began
        left = spent / (metrics.epoch - self._before) * (self._epochs - metrics.epoch)
        return epoch_line(metrics, self._epochs, spent, left)

    def _is_shown(self, metrics: Metrics) -> bool:
        """Return whether TensorBoard gets this epoch: all of a short training, fewer of a long one."""
        every = -(-self._epochs // _POINTS)
        return metrics.epoch % every == 0 or metrics.epoch == self._epochs or metrics.validation is not None
