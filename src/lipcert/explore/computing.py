"""Compute in one thread at a time: while torch.fx traces a network, it changes the call of every module.

matplotlib's caches of fonts and formulas are not safe for several threads either.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")

_LOCK = threading.Lock()


def in_turn(items: Iterator[T]) -> Iterator[T]:
    """Yield the same items; between two of them other threads compute theirs.

    Example:
        >>> list(in_turn(iter([1, 2, 3])))
        [1, 2, 3]
    """
    while True:
        with _LOCK:
            try:
                item = next(items)
            except StopIteration:
                return
        yield item
