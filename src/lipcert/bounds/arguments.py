"""Check what a caller passes as a model, a tensor or a count, and say in one line what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from lipcert.errors import InputError


def checked_model(model: object) -> nn.Module:
    """Return the model, or raise unless it is a module whose Python code can be followed."""
    if isinstance(model, str | Path):
        raise InputError(
            f"model: expected an nn.Module, got {str(model)!r}; a saved model comes from lipcert.load"
        )
    if isinstance(model, type):
        raise InputError(
            f"model: expected an nn.Module, got the class {model.__name__}; make an object of it"
        )
    if not isinstance(model, nn.Module):
        raise InputError(f"model: expected an nn.Module, got {_described(model)}")
    if hasattr(model, "_orig_mod") or isinstance(model, torch.jit.ScriptModule):
        how = "torch.jit" if isinstance(model, torch.jit.ScriptModule) else "torch.compile"
        raise InputError(
            f"model: expected an nn.Module, got the output of {how}; pass the module it was made from"
        )
    return model


def checked_tensor(name: str, value: object) -> Tensor:
    """Return the value, or raise unless it is a dense tensor with numbers."""
    if isinstance(value, np.ndarray | list | tuple):
        kind = "NumPy array" if isinstance(value, np.ndarray) else type(value).__name__
        raise InputError(f"{name}: expected a tensor, got a {kind}; convert it with torch.as_tensor")
    if not isinstance(value, Tensor):
        raise InputError(f"{name}: expected a tensor, got {_described(value)}")
    if value.layout != torch.strided or value.is_meta:
        found = "one on the meta device, without numbers" if value.is_meta else str(value.layout)
        raise InputError(f"{name}: expected a dense tensor, got {found}")
    return value


def wrong_shape(x: Tensor, input_shape: Sequence[int]) -> str:
    """Return the complaint about a batch whose samples have another shape than the model takes.

    Example:
        >>> wrong_shape(torch.zeros(5, 3), (2,))
        'x: expected shape (B, 2), got (5, 3)'
    """
    return f"x: expected shape (B, {', '.join(map(str, input_shape))}), got {tuple(x.shape)}"


def checked_count(name: str, value: object, least: int = 1) -> int:
    """Return the value as an int, or raise unless it is a whole number, at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{name}: expected a whole number >= {least}, got {value!r}")
    return int(value)


def device_named(name: str | torch.device, what: str = "device") -> torch.device:
    """Return a device that works here; raise `InputError` if it does not."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{what}: expected a device of this machine, got {str(name)!r} ({reason})") from None
    return device


def _described(value: object) -> str:
    """Describe a value by its type, and by itself where it is short text."""
    kind = "None" if value is None else type(value).__name__
    return f"{kind} {value!r}" if isinstance(value, str) and len(value) < 40 else kind
