"""A model called as its owner would call it, and whether its outputs are close enough to expected ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.bounds.contract import sample_norm
from lipcert.errors import LipcertError, UnknownBoundError, reason

# Ways in which torch may keep track of gradients, none of which may change what a model computes.
Mode = Callable[[], AbstractContextManager[Any]]
MODES: tuple[Mode, ...] = (torch.no_grad, torch.enable_grad, torch.inference_mode)

# Relative differences that are put up with where a rule bounds no rounding.
_UNBOUNDED = {torch.float64: 1e-9, torch.float32: 1e-2}


class UncallableError(UnknownBoundError):
    """The model cannot be called."""


def called(model: nn.Module, x: Tensor, mode: Mode = torch.no_grad) -> Any:
    """Return what a model returns; whatever goes wrong is told in one line."""
    try:
        with mode():
            return model(x)
    except LipcertError:
        raise
    except Exception as error:
        raise UncallableError(f"the model could be traced, but not called: {reason(error)}") from error


def described(outputs: object) -> str:
    """Say what kind of thing a model returned."""
    return f"a tensor of {tuple(outputs.shape)}" if isinstance(outputs, Tensor) else type(outputs).__name__


def distance(outputs: Tensor, reference: Tensor) -> Tensor:
    """Return ‖outputs − reference‖ of every sample: (B,)."""
    both = [value.detach().to("cpu", torch.float64).flatten(1) for value in (outputs, reference)]
    apart: Tensor = torch.linalg.vector_norm(both[0] - both[1], dim=1)
    return apart


def within(outputs: Tensor, reference: Tensor, tolerance: Tensor) -> bool:
    """Return whether all samples lie within their tolerance; certificates say nothing of infinite ones."""
    apart, tolerance = distance(outputs, reference), tolerance.cpu()
    finite = torch.isfinite(reference.flatten(1)).all(1).cpu()
    return bool(((apart <= tolerance) | ~finite | tolerance.isposinf()).all())


def relative(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the tolerance where no rule says how a precision rounds: (B,)."""
    return _UNBOUNDED.get(dtype, 1e-2) * (1 + sample_norm(values.double()))
