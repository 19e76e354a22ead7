"""Refuse a model that cannot fit in memory, before any of it is allocated."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from lipcert.errors import InputError

# A training holds weights, gradients and two moments of an optimiser. A certificate holds weights, a float64
# copy and a snapshot. Both are four times the weights.
_COPIES = 4

# What torch raises and says of tensors whose size does not fit in 64 bits, and Python of an infinite one.
_SIZE_ERRORS = (RuntimeError, TypeError, OverflowError)
_OVERFLOWS = ("overflow", "too large", "infinity to integer")
_BEYOND = "the weights would need more memory than 64 bits can address"

# The operations that allocate a tensor of a given size.
_FACTORIES = ("empty", "zeros", "ones", "full", "rand", "randn", "eye", "arange")

M = TypeVar("M", bound=nn.Module)


class _TooLarge(Exception):  # noqa: N818  never leaves this file
    """A construction that is about to allocate more than there is."""


def built(build: Callable[[], M]) -> M:
    """Build a model, or raise with the memory it would need before that is allocated."""
    available = available_memory()
    if available is None or torch.get_default_device().type == "meta":  # where nothing is allocated
        return build()
    try:
        with torch.random.fork_rng(devices=[]), _Allocations(available // _COPIES):
            model = build()
            state = torch.get_rng_state()
    except _SIZE_ERRORS as error:
        if not _overflows(error):
            raise
        raise InputError(_BEYOND) from None
    except _TooLarge:
        _refuse_too_large(build, available)
        return build()  # what was too large was temporary
    torch.set_rng_state(state)
    return model


class _Allocations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that raises before the tensors made in it take more than so many bytes together."""

    def __init__(self, most: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._left = most

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        name = function.overloadpacket.__name__
        if name in _FACTORIES and args:
            size = args[0] if isinstance(args[0], list | tuple) else args[:1]
            dtype = given.get("dtype") or torch.get_default_dtype()
            self._left -= math.prod(map(int, size)) * dtype.itemsize
            if self._left < 0:
                raise _TooLarge
        return function(*args, **given)


def _refuse_too_large(build: Callable[[], nn.Module], available: int) -> None:
    """Count the weights on the meta device, where tensors have no numbers, and raise if they do not fit."""
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            model = build()
    except _SIZE_ERRORS as error:
        if _overflows(error):
            raise InputError(_BEYOND) from None
        raise InputError(f"the weights need more than {told(available)}: choose smaller sizes") from None
    weights = sum(t.numel() * t.element_size() for t in [*model.parameters(), *model.buffers()])
    if _COPIES * weights > available:
        raise InputError(
            f"the weights need {told(weights)} of memory, and training or certifying them "
            f"{told(_COPIES * weights)}; {told(available)} are available: choose smaller sizes"
        )


def _overflows(error: Exception) -> bool:
    """Return whether an error of torch is about a size that does not fit in 64 bits."""
    return any(word in str(error).lower() for word in _OVERFLOWS)


def available_memory() -> int | None:
    """Return the bytes that new programs can use, or all memory where that is unknown; None if both are."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):  # not Linux
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not POSIX
        return None


def told(count: float) -> str:
    """Write a number of bytes with its unit.

    Example:
        >>> told(20_000_000_012)
        '20.0 GB'
    """
    units = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
    power = min(int(math.log10(max(count, 1)) / 3), len(units) - 1)
    return f"{count / 1000**power:.1f} {units[power]}"
