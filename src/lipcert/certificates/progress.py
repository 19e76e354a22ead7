"""Something that turns while one waits for work that cannot say how far it is: a proof may take a minute."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.console import Console


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Shows `what` on a terminal for as long as the block takes."""
    console = Console(stderr=True)
    with console.status(what) if console.is_terminal else contextlib.nullcontext():
        yield


def proving() -> contextlib.AbstractContextManager[None]:
    """Around a proof."""
    return waiting("proving the bounds")
