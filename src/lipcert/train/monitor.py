"""The reports of a training: metrics.jsonl, TensorBoard, and a progress bar on a terminal."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch.utils.tensorboard import SummaryWriter

from lipcert.runs import Run
from lipcert.runs.metrics import Metrics

# The points of a curve in TensorBoard. Writing them takes longer than a short epoch.
_POINTS = 250


class Monitor:
    """A monitor with one JSON object per line and one bar per run; quiet where stderr is not a terminal."""

    def __init__(self, run: Run, epochs: int, step: int, bar: bool = True) -> None:
        self._epochs = epochs
        run.rewind_metrics(step)
        self._file = run.metrics_file.open("a")
        self._board = SummaryWriter(str(run.tensorboard), purge_step=step + 1 if step else None)
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

    def __enter__(self) -> Monitor:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
        self._file.close()
        self._board.close()

    def epoch(self, metrics: Metrics) -> None:
        """Write the metrics of a finished epoch."""
        self._file.write(metrics.line)
        self._file.flush()
        if self._is_shown(metrics):
            for name in metrics.numbers.keys() - {"epoch", "step"}:
                self._board.add_scalar(name, metrics.numbers[name], metrics.step)
        if self._progress.disable:
            return
        state = f"loss {metrics.loss:.3g}  accuracy {metrics.accuracy:.3f}  K_f {metrics.k_f:.3g}"
        self._progress.update(self._task, completed=metrics.epoch, state=state)

    def _is_shown(self, metrics: Metrics) -> bool:
        """Return whether TensorBoard gets this epoch: all of a short training, fewer of a long one."""
        every = -(-self._epochs // _POINTS)
        return metrics.epoch % every == 0 or metrics.epoch == self._epochs or metrics.validation is not None
