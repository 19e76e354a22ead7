"""What lipcert raises on purpose, and what it warns of."""

from __future__ import annotations


class LipcertError(Exception):
    """Anything lipcert raises on purpose."""


class InputError(LipcertError, ValueError):
    """Raised when what the user gave is wrong; the message is one clear line (exit status 2)."""


class UnknownBoundError(LipcertError, TypeError):
    """A module has no sound bound: unknown, or not globally Lipschitz."""


class StaleBoundError(LipcertError, RuntimeError):
    """The weights changed after their bound was proved."""


class DisagreementError(LipcertError, RuntimeError):
    """The model computes something else than the layers that were proved."""


class TrainingError(LipcertError, RuntimeError):
    """Training cannot go on (a loss that is not finite); what was good is kept."""


class InterruptedRunError(LipcertError):
    """Training was asked to stop; its state is saved (exit status 130)."""


def reason(error: BaseException) -> str:
    """Return the first line of a foreign error, or its kind where it says nothing."""
    return str(error).partition("\n")[0] or type(error).__name__


def exit_status(error: LipcertError) -> int:
    """Return the exit status for an error: 1 failed, 2 the input was wrong, 130 interrupted."""
    if isinstance(error, InterruptedRunError):
        return 130
    return 2 if isinstance(error, InputError) else 1


class LipcertWarning(UserWarning):
    """Sound, but not what the user probably expects."""
