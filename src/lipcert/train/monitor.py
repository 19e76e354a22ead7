"""What a training tells the world: metrics.jsonl, TensorBoard, and a progress bar on a terminal."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch.utils.tensorboard import SummaryWriter

from lipcert.train.rundir import RunDirectory


class Monitor:
    """One object a line, one bar a run; quiet where stderr is not a terminal."""

    def __init__(self, run: RunDirectory, epochs: int, step: int) -> None:
        run.rewind_metrics(step)
        self._file = run.metrics.open("a")
        self._board = SummaryWriter(str(run.tensorboard), purge_step=step + 1 if step else None)
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[state]}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task(run.path.name, total=epochs, state="")

    def __enter__(self) -> Monitor:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
        self._file.close()
        self._board.close()

    def epoch(self, metrics: dict[str, Any]) -> None:
        """Write the metrics of a finished epoch."""
        self._file.write(json.dumps(metrics) + "\n")
        self._file.flush()
        for name, value in metrics.items():
            if name not in ("epoch", "step"):
                self._board.add_scalar(name, value, metrics["step"])
        state = f"loss {metrics['loss']:.3g}  accuracy {metrics['accuracy']:.3f}  K_f {metrics['k_f']:.3g}"
        self._progress.update(self._task, completed=metrics["epoch"], state=state)
