"""One thread at a time: while a network is traced for a proof, torch.fx changes what calling any module does.

matplotlib's caches of fonts and formulas would not bear several threads either.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")

_LOCK = threading.Lock()


def in_turn(items: Iterator[T]) -> Iterator[T]:
    """The same items; between two of them other threads compute theirs.

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
