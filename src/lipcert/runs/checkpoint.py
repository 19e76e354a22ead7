"""The state of a training on disk: written atomically, read without executing anything."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, BinaryIO, TypedDict, cast

import torch
from torch import Tensor

from lipcert.atomic import atomic_file
from lipcert.errors import InputError


class Checkpoint(TypedDict):
    """Everything that the rest of a training depends on."""

    step: int  # optimiser steps done
    seconds: float  # how long it has trained so far
    model: dict[str, Tensor]  # Bounded: weights and power-iteration vectors
    optimizer: dict[str, Any]
    average: list[Tensor] | None  # weights averaged over the steps
    random: dict[str, Tensor]  # states of torch's generators, by type of device
    scaler: dict[str, Any]  # scales gradients in half precision; empty in other precisions
    losses: Tensor  # in the unfinished epoch
    correct: int  # in the unfinished epoch


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write atomically, without a copy of the state in memory: readers find the old state or the new one."""
    compact = {name: _compact(value) for name, value in checkpoint["model"].items()}
    with atomic_file(path) as file:
        stream = _Stream(file)
        torch.save({**checkpoint, "model": compact}, cast(BinaryIO, stream))
        if stream.error is not None:
            raise stream.error


class _Stream(io.RawIOBase):
    """A file to which torch writes; an error of the disk is kept, as torch ends the process with some."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self.error: OSError | None = None

    def write(self, piece: Any) -> int:
        """Write a piece, unless one before could not be written."""
        if self.error is None:
            try:
                self._file.write(piece)
            except OSError as error:
                self.error = error
        return len(piece)


def _compact(value: Tensor) -> Tensor:
    """Copy a part of a larger tensor, because otherwise the file would hold all of it."""
    return value.clone() if value.untyped_storage().nbytes() > value.nbytes else value


def load_checkpoint(path: Path) -> Checkpoint:
    """Load tensors and plain values only; anything else in the file is refused, not run."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"{path}: no such checkpoint") from None
    except Exception:  # a damaged file may make torch raise anything, with long advice for other programs
        raise InputError(
            f"{path}: cut short, or not a lipcert checkpoint; remove it and --resume begins anew"
        ) from None
    if isinstance(state, dict):
        state = _with_later_keys(state)
    if not isinstance(state, dict) or state.keys() != Checkpoint.__annotations__.keys():
        raise InputError(f"{path}: expected a lipcert checkpoint, found another torch file")
    return cast(Checkpoint, state)


def _with_later_keys(state: dict[str, Any]) -> dict[str, Any]:
    """Read a checkpoint from before the scaler and the generators of accelerators were in it."""
    if isinstance(state.get("random"), Tensor):
        return {**state, "random": {"cpu": state["random"]}, "scaler": {}}
    return state
