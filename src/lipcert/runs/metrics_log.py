"""The file of metrics while a training appends to it."""

from __future__ import annotations

from pathlib import Path

from lipcert.atomic import naming
from lipcert.runs.metrics import Metrics


class MetricsLog:
    """An open metrics.jsonl: every appended line is on its way to the disk when `append` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with naming(path):
            self._file = path.open("ab", buffering=0)

    def append(self, metrics: Metrics) -> None:
        """Write one line."""
        with naming(self._path):
            self._file.write(metrics.line.encode())

    def close(self) -> None:
        """Stop writing and close the file."""
        self._file.close()
