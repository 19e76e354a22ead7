"""Write the metrics of a training for TensorBoard, in this thread: its own writer fails in another one."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from lipcert.atomic import naming


class EventFile:
    """One file of events; after a resume TensorBoard forgets what it had beyond `step`."""

    def __init__(self, folder: Path, step: int) -> None:
        with naming(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}"
        with naming(self.path):
            self._file = self.path.open("ab", buffering=0)
        self._write(file_version="brain.Event:2")
        if step:
            self._write(step=step + 1, session_log=SessionLog(status=SessionLog.START))

    def add(self, numbers: Mapping[str, float], step: int) -> None:
        """Write the numbers of a step."""
        values = [Summary.Value(tag=name, simple_value=number) for name, number in numbers.items()]
        self._write(step=step, summary=Summary(value=values))

    def close(self) -> None:
        """Stop writing and close the file."""
        self._file.close()

    def _write(self, **content: Any) -> None:
        with naming(self.path):
            RecordWriter(self._file).write(Event(wall_time=time.time(), **content).SerializeToString())
