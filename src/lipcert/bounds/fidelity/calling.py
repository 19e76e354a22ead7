"""Call a model as its owner would, and compare its outputs with expected ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.bounds.contract import sample_norm
from lipcert.errors import LipcertError, UnknownBoundError, reason

# Gradient modes of torch, none of which may change what a model computes.
Mode = Callable[[], AbstractContextManager[Any]]
MODES: tuple[Mode, ...] = (torch.no_grad, torch.enable_grad, torch.inference_mode)

# Relative differences that are tolerated where a rule bounds no rounding error.
_UNBOUNDED = {torch.float64: 1e-9, torch.float32: 1e-2}


class UncallableError(UnknownBoundError):
    """An error for a model that cannot be called."""


def called(model: nn.Module, x: Tensor, mode: Mode = torch.no_grad) -> Any:
    """Return the output of a model; any failure becomes a one-line error."""
    try:
        with mode():
            return model(x)
    except LipcertError:
        raise
    except Exception as error:
        raise UncallableError(f"the model could be traced, but not called: {reason(error)}") from error


def described(outputs: object) -> str:
    """Describe the type of a model's output."""
    return f"a tensor of {tuple(outputs.shape)}" if isinstance(outputs, Tensor) else type(outputs).__name__


def distance(outputs: Tensor, reference: Tensor) -> Tensor:
    """Return ‖outputs − reference‖ per sample: (B,)."""
    both = [value.detach().to("cpu", torch.float64).flatten(1) for value in (outputs, reference)]
    apart: Tensor = torch.linalg.vector_norm(both[0] - both[1], dim=1)
    return apart


def within(outputs: Tensor, reference: Tensor, tolerance: Tensor) -> bool:
    """Return whether all samples lie within their tolerance; infinite outputs are never certified."""
    apart, tolerance = distance(outputs, reference), tolerance.cpu()
    finite = torch.isfinite(reference.flatten(1)).all(1).cpu()
    return bool(((apart <= tolerance) | ~finite | tolerance.isposinf()).all())


def relative(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the tolerance per sample where no rule bounds the rounding error: (B,)."""
    return _UNBOUNDED.get(dtype, 1e-2) * (1 + sample_norm(values.double()))
