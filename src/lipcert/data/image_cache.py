"""Decode image files once, into one memory-mapped array in the user's cache.

A million images are decoded by all cores, in the order of their names. What is decoded stays: a process that
is stopped leaves the beginning of the array, and the next one goes on behind it.
"""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np
import platformdirs
import torch
from torch import Tensor

from lipcert.cores import in_order
from lipcert.data.image_files import Form, mode_and_size, read_image
from lipcert.errors import InputError, LipcertError
from lipcert.locks import locked
from lipcert.models.memory import told
from lipcert.progress import reported
from lipcert.tables.kinds import shape_text

# The side of images that are too large for a network or differ in size.
SIDE = 64

# The unreadable images that an error names.
_SHOWN = 20

# From how many images on the size of the cache is said before it is made.
_MANY = 10_000

# After so many bytes the disk is made to keep what is written; an interrupted process goes on from there.
_KEPT = 1 << 26

# Tells Linux that copies of pages are not expected: otherwise it refuses files larger than the memory. Python
# has no name for it.
_NO_RESERVE = 0x4000 if sys.platform == "linux" else 0

T = TypeVar("T")


def common_form(paths: Sequence[Path]) -> Form:
    """Find a form for images that may differ: grey if all are; their own size if equal and small."""
    return _common_form(tuple(paths), _digest(paths))


@lru_cache(maxsize=4)  # training loads every split; the digest notices images that change
def _common_form(paths: tuple[Path, ...], digest: str) -> Form:
    found = set(_all_of(mode_and_size, paths, "reading images"))
    grey = {mode for mode, _ in found} <= {"L", "1"}
    sizes = {size for _, size in found}
    alike = len(sizes) == 1 and max(next(iter(sizes))) <= SIDE
    return Form("L" if grey else "RGB", None if alike else (SIDE, SIDE), convert=True)


def decoded(paths: Sequence[Path], form: Form) -> Tensor:
    """Return images (n, C, H, W), uint8, mapped from the cache; decode them if they are not there."""
    cache = platformdirs.user_cache_path("lipcert") / "images" / f"{_digest(paths, f'{form}')}.npy"
    images = _mapped(cache, len(paths))
    if images is None:
        _decode_alone(cache, paths, form)
        images = _mapped(cache, len(paths))
    if images is None:
        raise InputError(f"{cache}: the cache of images was damaged while it was written; try again")
    return torch.from_numpy(images)


def _mapped(cache: Path, count: int) -> np.ndarray | None:
    """Map the file of the cache; None if there is none, or if it is damaged: then it is removed."""
    try:
        with cache.open("rb") as file:
            shape = _shape_in(file)
            if len(shape) == 4 and shape[0] == count and file.tell() + math.prod(shape) == _length(file):
                return _pages(file, shape)
    except FileNotFoundError:
        return None
    except (ValueError, EOFError):  # cut short, or not an array
        pass
    cache.unlink(missing_ok=True)
    return None


def _pages(file: BinaryIO, shape: tuple[int, ...]) -> np.ndarray:
    """Map the rest of a file; pages are read when they are used."""
    # Copied on write: torch needs writable memory, and the file must not change.
    if hasattr(mmap, "MAP_PRIVATE"):
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        pages = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE | _NO_RESERVE, protection)
    else:  # Windows
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    return np.frombuffer(pages, np.uint8, math.prod(shape), file.tell()).reshape(shape)


def _shape_in(file: BinaryIO) -> tuple[int, ...]:
    """Read the header of an array of bytes; `ValueError` if it is another one."""
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("another version")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if fortran or dtype != np.uint8:
        raise ValueError("another array")
    return shape


def _length(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _digest(paths: Sequence[Path], first: str = "") -> str:
    """Return a digest that changes with the name, length or time of any file."""
    digest = hashlib.sha256(f"{first}\n".encode())
    resolve = lru_cache(maxsize=8)(Path.resolve)  # folders have many files each
    for path in paths:
        status, place = os.lstat(path), resolve(path.parent) / path.name
        if stat.S_ISLNK(status.st_mode):
            status, place = path.stat(), path.resolve()
        digest.update(os.fsencode(place) + f" {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _decode_alone(cache: Path, paths: Sequence[Path], form: Form) -> None:
    """Decode all images into one file; of several processes one decodes, and the others wait for it."""
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        with locked(cache.with_suffix(".lock"), wait=True):
            if _mapped(cache, len(paths)) is None:
                _decode_to(cache, paths, form)
    except OSError as error:  # no mistake of the input
        raise LipcertError(
            f"{cache.parent}: the cache of images cannot be written ({error.strerror}); free some space, "
            "or set XDG_CACHE_HOME to another place"
        ) from None


def _decode_to(cache: Path, paths: Sequence[Path], form: Form) -> None:
    """Write images to the end of the file, never into holes: a full disk is an error, not a signal."""
    part = cache.with_suffix(".part")
    try:
        with part.open("ab+") as file:
            done = _kept_images(file, len(paths))
            _write_images(file, _pixels(paths, done, form), len(paths), done)
        part.replace(cache)
    except (OSError, LipcertError):  # nobody would go on from here; after an interruption one will
        part.unlink(missing_ok=True)
        raise


def _kept_images(file: BinaryIO, count: int) -> int:
    """Count the whole images that an interrupted process left and the disk has kept; remove the rest."""
    file.seek(0)
    try:
        shape = _shape_in(file)
        start, size = file.tell(), math.prod(shape[1:])
        done = (_length(file) // _KEPT * _KEPT - start) // size if shape[0] == count else 0
    except (ValueError, EOFError, ZeroDivisionError):
        done = 0
    file.truncate(start + done * size if done > 0 else 0)
    file.seek(0, os.SEEK_END)
    return max(done, 0)


def _write_images(file: BinaryIO, images: Iterator[np.ndarray], count: int, done: int) -> None:
    """Write images of one shape as an array of NumPy's format, behind those that are there."""
    position = file.tell()
    for i, image in enumerate(images, start=done):
        if i == done:
            _announce(file, image.shape, count, done)
        if i == 0:
            header = {"descr": "|u1", "fortran_order": False, "shape": (count, *image.shape)}
            np.lib.format.write_array_header_1_0(file, header)
            position = file.tell()
        file.write(image.tobytes())
        before, position = position, position + image.size
        if before // _KEPT != position // _KEPT:
            _flush(file)
    _flush(file)


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _announce(file: BinaryIO, shape: tuple[int, ...], count: int, done: int) -> None:
    """Say what many images will take, and raise before the work if the disk has no room for them."""
    size, folder = count * math.prod(shape), Path(file.name).parent
    free = shutil.disk_usage(folder).free
    if size - _length(file) > free:
        raise LipcertError(
            f"{folder}: the cache of {count:,} images of {shape_text(shape)} needs {told(size)}, and "
            f"{told(free)} are free; free some space, or set XDG_CACHE_HOME to another place"
        )
    if count >= _MANY:
        again = f", {done:,} of them are there already" if done else ""
        print(
            f"decoding {count:,} images of {shape_text(shape)} once into {folder}: {told(size)}, "
            f"{told(free)} are free{again}",
            file=sys.stderr,
            flush=True,
        )


def _pixels(paths: Sequence[Path], done: int, form: Form) -> Iterator[np.ndarray]:
    """Yield the pixels of the images that are not done; all must have the shape of the first."""
    shape = read_image(paths[0], form).shape if done else None

    def checked(path: Path, image: np.ndarray) -> np.ndarray:
        nonlocal shape
        shape = shape or image.shape
        if image.shape != shape:
            found, expected = (f"{s[2]}×{s[1]}" for s in (image.shape, shape))
            raise InputError(f"{path}: {found} pixels, the first image has {expected}; set data.size=32")
        return image

    return _all_of(partial(read_image, form=form), paths[done:], "decoding images", checked)


def _all_of(
    read: Callable[[Path], T],
    paths: Sequence[Path],
    title: str,
    check: Callable[[Path, T], T] = lambda path, found: found,
) -> Iterator[T]:
    """Yield what is read, up to the first file that cannot be read; then raise, and name all of these."""
    complaints: list[str] = []

    def attempt(path: Path) -> T | InputError:
        try:
            return read(path)
        except InputError as error:
            return error

    each = zip(paths, in_order(attempt, paths), strict=True)
    for path, found in reported(each, title, len(paths)):
        try:
            if isinstance(found, InputError):
                raise found
            checked = check(path, found)
        except InputError as error:
            complaints.append(str(error))
            continue
        if not complaints:
            yield checked
    if complaints:
        raise InputError(_listed(complaints, len(paths)))


def _listed(complaints: Sequence[str], total: int) -> str:
    """Return one complaint as it is, or the first of several with their number."""
    if len(complaints) == 1:
        return complaints[0]
    shown = [f"{len(complaints)} of {total} images cannot be used:", *complaints[:_SHOWN]]
    if len(complaints) > _SHOWN:
        shown.append(f"and {len(complaints) - _SHOWN} more")
    return "\n  ".join(shown)
