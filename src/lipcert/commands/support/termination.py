"""Let SIGTERM end a command as Ctrl-C does: temporary files are removed, and no traceback is printed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def terminable() -> Iterator[None]:
    """Raise KeyboardInterrupt for SIGTERM inside this context, unless it is ignored."""
    # Other threads cannot set signals; SIGTERM at its default would end the process at once.
    if threading.current_thread() is not threading.main_thread() or (
        signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
    ):
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
