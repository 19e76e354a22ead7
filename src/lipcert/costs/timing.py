"""Turn counted work into seconds: the operations that matter most are run on a device, a few times each."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from lipcert.costs.counting import Call, Work, aten
from lipcert.models.memory import available_memory

# A first guess, from which the order of the operations and the rest are taken: operations and bytes per
# second, and the seconds of a call.
_FLOPS, _BYTES, _CALL = 3e10, 5e9, 5e-6

# How much of the guessed time is measured, and the seconds and runs that this may take.
_COVERED, _SECONDS, _RUNS = 0.9, 2.0, 2

# The part of the memory that an operation may take to be timed.
_PART = 4


@dataclass(frozen=True)
class Timed:
    """Seconds, the part of them that was measured on the device, and not taken in proportion."""

    seconds: float
    measured: float


def timed(work: Work, device: torch.device) -> Timed:
    """Return the seconds that work takes on a device."""
    calls = sorted(work.calls.values(), key=_guess, reverse=True)
    whole, begin = sum(map(_guess, calls)), _clock(device)
    guessed = found = 0.0
    for call in calls:
        if guessed >= _COVERED * whole or _clock(device) - begin > _SECONDS:
            break
        seconds = _seconds(call, device)
        if seconds is not None:
            guessed, found = guessed + _guess(call), found + call.times * seconds
    if not guessed:
        return Timed(whole, 0.0)
    return Timed(found * whole / guessed, guessed / whole)


def _guess(call: Call) -> float:
    return call.times * (call.flops / _FLOPS + call.bytes / _BYTES + _CALL)


def _seconds(call: Call, device: torch.device) -> float | None:
    """Return the least seconds of a call; None if it is too large to be tried, or cannot run here."""
    if call.bytes > (available_memory() or math.inf) / _PART:
        return None
    try:
        with torch.no_grad():
            args, kwargs = tree_map(lambda leaf: _filled(leaf, call, device), call.arguments)
            return min(_once(call.function, args, kwargs, device) for _ in range(_RUNS))
    except (RuntimeError, NotImplementedError, TypeError, IndexError):  # this device does not have it
        return None


def _once(function: Any, args: Any, kwargs: Any, device: torch.device) -> float:
    start = _clock(device)
    function(*args, **kwargs)
    return _clock(device) - start


def _clock(device: torch.device) -> float:
    """Return seconds; on a CPU those of this process, as if nothing else ran, and all threads were busy."""
    if device.type == "cpu":
        return time.process_time() / torch.get_num_threads()
    torch.accelerator.synchronize()
    return time.perf_counter()


def _filled(leaf: Any, call: Call, device: torch.device) -> Any:
    """Return a tensor of this shape with numbers that the operation takes."""
    if isinstance(leaf, torch.device):
        return device
    if not isinstance(leaf, Tensor):
        return leaf
    tensor = torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device=device)
    if not (leaf.is_floating_point() or leaf.is_complex()):
        return tensor.zero_()
    if call.function.overloadpacket is aten.linalg_cholesky_ex:
        tensor.zero_().diagonal(dim1=-2, dim2=-1).fill_(1)
        return tensor
    return tensor.uniform_(0.5, 1.0) if leaf.is_floating_point() else tensor.fill_(0.5 + 0.5j)


def disk_speed(folder: Path, size: int = 1 << 25) -> float:
    """Return the bytes per second that a folder takes, flushed to the disk."""
    content = os.urandom(size)
    with TemporaryFile(dir=folder) as file:
        start = time.perf_counter()
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        return size / (time.perf_counter() - start)
