"""Say where a program that reads a number of a tensor has to wait.

A GPU works through a queue, and a number is there when the queue is empty. Code that runs in every training
step asks here first, and does without the number where it would have to wait.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

# Devices whose numbers can be read at once.
_AT_ONCE: tuple[str, ...] = ("cpu", "meta")


def is_read_at_once(x: Tensor) -> bool:
    """Return whether a number of `x` can be read without waiting; never in a graph of torch.compile."""
    return x.device.type in _AT_ONCE and not torch.compiler.is_compiling()


@contextlib.contextmanager
def as_on_an_accelerator() -> Iterator[None]:
    """Let all code inside this context work as it does on a GPU, to test it and to compare devices."""
    global _AT_ONCE
    before, _AT_ONCE = _AT_ONCE, ()
    try:
        yield
    finally:
        _AT_ONCE = before
