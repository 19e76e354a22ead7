"""The state of a training on disk: written atomically, read without executing anything."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any, TypedDict, cast

import torch
from torch import Tensor

from lipcert.atomic import write_atomically
from lipcert.errors import InputError


class Checkpoint(TypedDict):
    """Everything that the rest of a training depends on."""

    step: int  # optimiser steps done
    seconds: float  # of training so far
    model: dict[str, Tensor]  # Bounded: weights and power-iteration vectors
    optimizer: dict[str, Any]
    average: list[Tensor] | None  # weights averaged over the steps
    random: Tensor  # torch's generator on the CPU
    losses: Tensor  # of the unfinished epoch
    correct: int  # of the unfinished epoch


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write atomically: a reader finds the old state or the new one."""
    buffer = io.BytesIO()
    compact = {name: _compact(value) for name, value in checkpoint["model"].items()}
    torch.save({**checkpoint, "model": compact}, buffer)
    write_atomically(path, buffer.getvalue())


def _compact(value: Tensor) -> Tensor:
    """Copy a part of a larger tensor, because otherwise the file would hold all of it."""
    return value.clone() if value.untyped_storage().nbytes() > value.nbytes else value


def load_checkpoint(path: Path) -> Checkpoint:
    """Load tensors and plain values only; anything else in the file is refused, not run."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"{path}: no such checkpoint") from None
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path}: cut short, or not a lipcert checkpoint ({reason[:120]})") from None
    if not isinstance(state, dict) or state.keys() != Checkpoint.__annotations__.keys():
        raise InputError(f"{path}: expected a lipcert checkpoint, found another torch file")
    return cast(Checkpoint, state)
