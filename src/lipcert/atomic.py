"""Write files atomically: an interruption leaves either the old file or the new one."""

from __future__ import annotations

import errno
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from lipcert.errors import InputError, LipcertError

# No room: on the disk, in the quota of the user, or below the largest length of a file (ulimit -f).
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Names that no file can have.
_IMPOSSIBLE = (errno.ENAMETOOLONG, errno.ELOOP)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a temporary file of a name of its own, flush it to disk, then rename it."""
    with atomic_file(path) as file:
        file.write(content)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file of a name of its own; at the end flush it to disk and rename it."""
    # Its own name, because two processes that wrote one temporary file would mix their contents.
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with naming(path):
            with beside.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file in an error of the disk: one that is full says nothing of the file that met its end."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def check_file_place(path: Path) -> None:
    """Raise `InputError` if no file of this name can be written; folders on the way to it may be missing."""
    if path.is_dir():
        raise InputError(f"{path}: expected the name of a file, found a directory")
    check_folder_place(path.parent, path)


def check_folder_place(folder: Path, named: Path | None = None) -> None:
    """Raise `InputError` if no file can be written into a folder, which may be missing; nothing is left.

    The complaint is about `named`, what the user typed.
    """
    with writing(named or folder):
        there = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
        # Asking for permissions is not enough: root has all, and a file system may be read-only.
        probe = there / f".lipcert.{uuid.uuid4().hex}.part"
        probe.touch()
        probe.unlink()


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; what is empty after an error inside this context is removed again."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # not empty: it stays, and so do those above it
            for one in missing:
                one.rmdir()
        raise


def is_unfinished(path: Path) -> bool:
    """Return whether this is the temporary file of a process that was killed while it wrote."""
    return path.name.startswith(".") and path.name.endswith(".part")


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Report an error of the disk inside this context as one of the place that the user named."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            error.filename = error.filename or str(place)
            raise disk_error(error) from None
        raise InputError(f"{place}: cannot be written ({error.strerror}); choose another place") from None


def disk_error(error: OSError) -> LipcertError:
    """Return one line about an error of the disk: a full disk is no wrong input, an impossible name is."""
    where = f"{error.filename}: " if error.filename else ""
    if error.errno in _FULL:
        remedy = "make room and run the same command again, a training with --resume"
        return LipcertError(f"{where}cannot be written ({error.strerror}); {remedy}")
    if error.errno in _IMPOSSIBLE:
        return InputError(f"{where}expected a possible name of a file ({error.strerror}); choose another")
    return LipcertError(f"{where}{error.strerror or error}")


def write_json(path: Path, content: Any) -> None:
    """Write readable JSON, atomically."""
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())
