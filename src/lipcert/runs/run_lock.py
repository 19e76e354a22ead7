"""Lock a run directory, so that one process at a time trains in it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from lipcert.errors import InputError
from lipcert.locks import HeldError, locked

NAME = ".lock"


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder inside this context; raise if another process holds it, and say which."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locked(folder / NAME, json.dumps(_myself()).encode()))
        except HeldError as other:
            raise InputError(
                f"{folder}: another process trains here ({_described(other.holder)}); "
                "wait for it, stop it, or choose another place with --output"
            ) from None
        yield


def _myself() -> dict[str, str]:
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    return {"process": str(os.getpid()), "host": socket.gethostname(), "since": now}


def _described(holder: bytes) -> str:
    """Describe the holder by what it wrote into the file."""
    try:
        found = json.loads(holder)
        return f"process {found['process']} on {found['host']}, since {found['since']}"
    except (ValueError, KeyError, TypeError):  # it has the lock and has not written yet
        return "it has just started"
