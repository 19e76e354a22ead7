"""The errors and warnings that lipcert raises on purpose."""

from __future__ import annotations


class LipcertError(Exception):
    """The base of all errors that lipcert raises on purpose."""


class InputError(LipcertError, ValueError):
    """Wrong input of the user, reported in one clear line (exit status 2)."""


class UnknownBoundError(LipcertError, TypeError):
    """A module without a sound bound: unknown, or not globally Lipschitz."""


class StaleBoundError(LipcertError, RuntimeError):
    """A proved bound whose weights changed afterwards."""


class DisagreementError(LipcertError, RuntimeError):
    """A model that computes other values than its proved layers."""


class TrainingError(LipcertError, RuntimeError):
    """A training that cannot go on (a loss that is not finite); the good state is kept."""


class InterruptedRunError(LipcertError):
    """A training that was asked to stop; its state is saved (exit status 130)."""


def reason(error: BaseException) -> str:
    """Return the first line of a foreign error, or its type where it has no message."""
    return str(error).partition("\n")[0] or type(error).__name__


def lacks_memory(error: BaseException) -> bool:
    """Return whether an error says that there is not enough memory: Python's own, or one of torch."""
    said = str(error)
    return isinstance(error, MemoryError) or "can't allocate memory" in said or "out of memory" in said


def exit_status(error: LipcertError) -> int:
    """Return the exit status for an error: 1 failed, 2 the input was wrong, 130 interrupted."""
    if isinstance(error, InterruptedRunError):
        return 130
    return 2 if isinstance(error, InputError) else 1


class LipcertWarning(UserWarning):
    """A warning about a result that is sound, but probably not what the user expects."""
