"""Hold a file's lock, which one process at a time can have.

The kernel releases a lock when its process dies, so nothing is left that must be removed by hand.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a Unix: there is no lock, and nothing else changes
    fcntl = None  # type: ignore[assignment]

# Answers of file systems that have no locks, as some network file systems.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


class HeldError(Exception):
    """Another process holds the lock; `holder` is what it wrote into the file."""

    def __init__(self, holder: bytes) -> None:
        super().__init__()
        self.holder = holder


@contextlib.contextmanager
def locked(place: Path, about: bytes = b"", *, wait: bool = False) -> Iterator[None]:
    """Hold the lock of a file inside this context, with `about` as its content.

    The file is removed at the end. If another process holds the lock, wait for it or raise `HeldError`.
    """
    if fcntl is None:
        yield
        return
    file = _acquired(place, wait)
    try:
        os.truncate(file, 0)
        os.pwrite(file, about, 0)
        yield
    finally:
        # Removed while it is held: whoever waits for it finds that it is not the file of this name any more.
        place.unlink(missing_ok=True)
        os.close(file)


def _acquired(place: Path, wait: bool) -> int:
    """Return the open file of this name, locked."""
    while True:
        file = os.open(place, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            holder = os.pread(file, 1000, 0)
            os.close(file)
            raise HeldError(holder) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                os.close(file)
                raise
        if _is_still(place, file):
            return file
        os.close(file)


def _is_still(place: Path, file: int) -> bool:
    """Return whether an open file is the one of this name; the holder before may have removed it."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(place))
    except FileNotFoundError:
        return False
