"""Show a spinner for work without known progress: a proof may take a minute."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.console import Console


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show `what` on a terminal while the block runs."""
    console = Console(stderr=True)
    with console.status(what) if console.is_terminal else contextlib.nullcontext():
        yield


def proving() -> contextlib.AbstractContextManager[None]:
    """Show a spinner during a proof."""
    return waiting("proving the bounds")
