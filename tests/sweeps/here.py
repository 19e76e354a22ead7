"""A crew without processes: starting one takes longer than a small training."""

from __future__ import annotations

from collections.abc import Sequence

from lipcert.commands.support.sweep_worker import carry_out
from lipcert.errors import LipcertError
from lipcert.sweeps.crew import Outcome
from lipcert.sweeps.trial import Job


class CrewHere:
    """Runs each job in this process, by the function that the processes of a sweep run."""

    def __init__(self, size: int | None = 2) -> None:
        self.size = size or 2
        self._ended: list[Outcome] = []

    def start(self, jobs: Sequence[Job]) -> None:
        self._ended += [Outcome(job, _complaint(job)) for job in jobs]

    def ended(self, seconds: float) -> list[Outcome]:
        ended, self._ended = self._ended, []
        return ended

    def stop(self) -> None:
        """Nothing is under way."""


def _complaint(job: Job) -> str | None:
    try:
        carry_out({str(trial.path): trial.tree for trial in job}, accelerator="cpu")
    except LipcertError as error:
        return str(error)
    return None
