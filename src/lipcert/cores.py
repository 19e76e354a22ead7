"""Count the processor cores that this process may use, and use them all."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")

# Calls per core that are begun before the first result is taken: more would fill the memory.
_AHEAD = 8


def available_cores() -> int:
    """Count the cores of the process's affinity: taskset, SLURM and containers give a part of the machine."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_order(function: Callable[[S], T], items: Iterable[S]) -> Iterator[T]:
    """Yield the result for every item, in their order, computed on all cores a few items ahead.

    Example:
        >>> list(in_order(abs, [3, -1, -2]))
        [3, 1, 2]
    """
    cores, begun = available_cores(), deque[Future[T]]()
    with ThreadPoolExecutor(cores) as pool:
        for item in items:
            begun.append(pool.submit(function, item))
            if len(begun) > _AHEAD * cores:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
