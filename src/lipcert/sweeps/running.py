"""Run trials: finished ones stay, interrupted ones continue, and a failure stops no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lipcert.errors import InterruptedRunError, LipcertError
from lipcert.sweeps.crew import Crew, Outcome
from lipcert.sweeps.trial import Trial, check_trials, jobs_of
from lipcert.sweeps.watch import Watch
from lipcert.train.interrupt import Interrupt

# Seconds between two checks.
_PAUSE = 0.5


def run_trials(trials: Sequence[Trial], crew: Crew, overwrite: bool = False) -> dict[Trial, str]:
    """Run missing trials, and return the complaints of those that failed."""
    check_trials(trials, overwrite)
    if overwrite:
        for trial in trials:
            trial.run.start(trial.tree, resume=False, overwrite=True)
    missing = [trial for trial in trials if not trial.is_finished()]
    failures: dict[Trial, str] = {}
    with Watch(trials, missing) as watch, Interrupt() as interrupt:
        jobs = jobs_of(missing, crew.size)
        left = len(jobs)
        try:
            crew.start(jobs)
            while left:
                for outcome in crew.ended(_PAUSE):
                    left -= 1
                    failures |= _failed(outcome)
                    watch.ended(outcome.job, failures)
                watch.look()
                if interrupt.requested:
                    raise InterruptedRunError(
                        "interrupted; finished trainings are kept and the others saved: "
                        "the same command goes on"
                    )
        except BaseException:
            crew.stop()
            raise
    return failures


def _failed(outcome: Outcome) -> dict[Trial, str]:
    """Return the trials that failed; some of a stack may be done although another failed."""
    lost = [trial for trial in outcome.job if not trial.is_finished()]
    if outcome.complaint is not None:
        return dict.fromkeys(lost or outcome.job, outcome.complaint)
    return dict.fromkeys(lost, "left no certificate")


def complete(trials: Sequence[Trial], crew: Crew, overwrite: bool = False) -> None:
    """Run missing trials, and raise at the end if one of them failed."""
    failures = run_trials(trials, crew, overwrite)
    if failures:
        raise LipcertError(failure_line(failures, len(trials)))


def failure_line(failures: Mapping[Trial, str], count: int) -> str:
    """Say how many trials failed, and why the first did; empty if none."""
    for trial, complaint in failures.items():
        return f"{len(failures)} of {count} failed; the first: {trial.path}: {complaint}"
    return ""
