"""Run the jobs of a sweep: on processes of this machine here, on a Ray cluster in ray_crew.py."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Protocol

from lipcert.cores import available_cores
from lipcert.errors import InputError
from lipcert.sweeps.trial import Job

# The command of a process. It stands above this package, as it also draws the figures of a run.
WORKER = "lipcert.commands.support.sweep_worker"


@dataclass(frozen=True)
class Outcome:
    """The result of a job; without a complaint it is done."""

    job: Job
    complaint: str | None = None


class Crew(Protocol):
    """A pool that takes jobs and reports which have ended."""

    size: int  # jobs at a time

    def start(self, jobs: Sequence[Job]) -> None:
        """Take jobs on."""

    def ended(self, seconds: float) -> list[Outcome]:
        """Wait at most this long, and return the jobs that ended since the last call."""

    def stop(self) -> None:
        """Save and end all running jobs."""


def check_size(size: int | None) -> None:
    """Raise unless the number of jobs is at least 1."""
    if size is not None and size < 1:
        raise InputError(f"--jobs: expected at least 1, got {size}")


class LocalCrew:
    """A pool of processes on this machine."""

    def __init__(self, size: int | None = None) -> None:
        check_size(size)
        self.size = size or available_cores()
        self._waiting: deque[Job] = deque()
        self._working: list[_Worker] = []

    def start(self, jobs: Sequence[Job]) -> None:
        """Take jobs on and begin with the first ones."""
        self._waiting.extend(jobs)
        self._fill()

    def ended(self, seconds: float) -> list[Outcome]:
        """Return the jobs that ended within this many seconds."""
        deadline = time.monotonic() + seconds
        while not (done := [w for w in self._working if w.process.poll() is not None]):
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
        self._working = [w for w in self._working if w not in done]
        self._fill()
        return [worker.outcome() for worker in done]

    def stop(self) -> None:
        """Interrupt all jobs once, and wait until each has saved its state."""
        self._waiting.clear()
        try:
            for worker in self._working:
                worker.process.send_signal(signal.SIGINT)
            for worker in self._working:
                worker.process.wait()
        except BaseException:  # a second Ctrl-C
            for worker in self._working:
                worker.process.kill()
            raise

    def _fill(self) -> None:
        threads = max(available_cores() // self.size, 1)
        while self._waiting and len(self._working) < self.size:
            self._working.append(_Worker(self._waiting.popleft(), threads))


class _Worker:
    """A process that runs a job."""

    def __init__(self, job: Job, threads: int) -> None:
        self.job = job
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  a full pipe would stop it
        self.process = subprocess.Popen(
            [sys.executable, "-m", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            env={"OMP_NUM_THREADS": str(threads), **os.environ},
            start_new_session=True,  # a Ctrl-C in the terminal reaches it only through `stop`, once
        )
        assert self.process.stdin is not None
        work = {str(trial.path): trial.tree for trial in job}
        with contextlib.suppress(BrokenPipeError):  # it died at once: its status and last output are reported
            self.process.stdin.write(json.dumps(work).encode() + b"\n")
            self.process.stdin.flush()

    def outcome(self) -> Outcome:
        """Return the outcome after the process has ended."""
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        self._said.close()
        status = self.process.returncode
        if status == 0:
            return Outcome(self.job)
        if status < 0:
            return Outcome(self.job, f"killed by signal {signal.Signals(-status).name}")
        return Outcome(self.job, lines[-1] if lines else f"ended with status {status}")
