"""Show on a terminal that work goes on: a spinner, or a bar where the number of steps is known."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import track

T = TypeVar("T")

# Seconds between two lines of a log.
_LINE_EVERY = 60.0


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show `what` on a terminal while the block runs."""
    console = Console(stderr=True)
    with console.status(what) if console.is_terminal else contextlib.nullcontext():
        yield


def proving() -> contextlib.AbstractContextManager[None]:
    """Show a spinner during a proof: it may take a minute."""
    return waiting("proving the bounds")


def tracked(items: Iterable[T], what: str, total: int | None = None, *, quiet: bool = False) -> Iterable[T]:
    """Show a bar on a terminal while the items are taken one by one."""
    console = Console(stderr=True)
    hidden = quiet or not console.is_terminal
    return track(items, what, total, console=console, transient=True, disable=hidden)


def reported(items: Iterable[T], what: str, total: int) -> Iterable[T]:
    """Show a bar on a terminal, and elsewhere a line per minute, while many items are taken one by one."""
    if Console(stderr=True).is_terminal:
        return tracked(items, what, total)
    return _with_lines(items, what, total)


def _with_lines(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    start = last = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - last >= _LINE_EVERY:
            last, pace = now, done / (now - start)
            left = (total - done) / pace / 60
            print(
                f"{what}: {done:,} of {total:,}, {pace:.0f} per second, about {left:.0f} minutes left",
                file=sys.stderr,
                flush=True,
            )
