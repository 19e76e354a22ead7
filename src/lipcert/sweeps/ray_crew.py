"""Run the jobs of a sweep as tasks of a Ray cluster; without an address, of Ray on this machine.

Every machine needs lipcert, the data sets and the directory of the runs at the same place, as on a shared
file system. A task whose machine or process dies is given to another, which continues from the checkpoint.
"""

from __future__ import annotations

import importlib
import logging
import os
import socket
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lipcert.errors import InputError
from lipcert.sweeps.crew import WORKER, Outcome, check_size
from lipcert.sweeps.trial import Job

# How often the process of a job may die.
_LIVES = 3

# Seconds in which an interrupted training saves its state.
_PATIENCE = 120.0


class RayCrew:
    """A pool of tasks with one processor each, and one accelerator each where the cluster has some."""

    def __init__(self, size: int | None = None, address: str | None = None) -> None:
        try:
            ray: Any = importlib.import_module("ray")
        except ImportError:
            raise InputError("--backend ray: Ray is missing; pip install 'lipcert[ray]' brings it") from None
        check_size(size)
        _check_answers(address)
        self._ray = ray
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # its future default
        options: dict[str, Any] = {"num_cpus": size} if address is None and size else {}
        try:
            ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **options)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise InputError(f"--address {address}: {str(error).splitlines()[0]}") from None
        found = ray.cluster_resources()
        self._accelerators = int(found.get("GPU", 0))
        self.size = size or self._accelerators or int(found.get("CPU", 1))
        self._task = ray.remote(
            num_cpus=1,
            num_gpus=1 if self._accelerators else 0,
            max_calls=1,  # a fresh process for every job
            max_retries=_LIVES,
        )(_carry_out)
        self._waiting: deque[Job] = deque()
        self._jobs: dict[Any, Job] = {}

    def start(self, jobs: Sequence[Job]) -> None:
        """Give the cluster as many jobs as may run."""
        self._waiting.extend(jobs)
        self._fill()

    def ended(self, seconds: float) -> list[Outcome]:
        """Return the jobs that ended within this many seconds."""
        done, _ = self._ray.wait(list(self._jobs), num_returns=1, timeout=seconds)
        outcomes = [self._outcome(task) for task in done]
        self._fill()
        return outcomes

    def stop(self) -> None:
        """Interrupt all jobs, wait until each has saved its state, and disconnect from the cluster."""
        self._waiting.clear()
        for task in self._jobs:
            self._ray.cancel(task, force=False)
        if self._jobs:
            self._ray.wait(list(self._jobs), num_returns=len(self._jobs), timeout=_PATIENCE)
        self._ray.shutdown()

    def _fill(self) -> None:
        while self._waiting and len(self._jobs) < self.size:
            job = self._waiting.popleft()
            work = {str(trial.path.absolute()): trial.tree for trial in job}
            self._jobs[self._task.remote(work, str(Path.cwd()))] = job

    def _outcome(self, task: Any) -> Outcome:
        job = self._jobs.pop(task)
        try:
            return Outcome(job, self._ray.get(task))
        except self._ray.exceptions.WorkerCrashedError:
            return Outcome(job, f"its process died {_LIVES + 1} times")
        except self._ray.exceptions.RayError as error:
            return Outcome(job, str(error).strip().splitlines()[-1])


def _check_answers(address: str | None) -> None:
    """Raise at once if the address does not answer, because Ray itself waits for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if not (host and colon and port.isdecimal()):
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"--address {address}: nobody answers ({error})") from None


def _carry_out(work: dict[str, dict[str, Any]], folder: str) -> str | None:
    """Run a job as a task; return the complaint if it failed."""
    from lipcert.atomic import disk_error
    from lipcert.errors import LipcertError

    if Path(folder).is_dir():
        os.chdir(folder)  # recipes may name files from there
    try:
        importlib.import_module(WORKER).carry_out(work)
    except LipcertError as error:
        return str(error)
    except OSError as error:
        return str(disk_error(error))
    return None
