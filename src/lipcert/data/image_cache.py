"""Decode image files once, into one memory-mapped array in the user's cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import platformdirs
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from rich.console import Console
from rich.progress import track
from torch import Tensor

from lipcert.errors import InputError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")

# The side of images that are too large for a network or differ in size.
SIDE = 64

# Modes whose conversion to 8 bits would clip values.
_DEEP = ("I", "I;16", "I;16B", "I;16L", "F")
_ORIENTATION = 0x0112  # of Exif: how the camera was held; from 5 on, turned by 90 degrees


@dataclass(frozen=True)
class Form:
    """The form of images: `mode` RGB or L (grey) and `size` (width, height); without a size they must agree.

    `convert` converts other modes to this one, and rotates photographs upright.
    """

    mode: str = "RGB"
    size: tuple[int, int] | None = None
    convert: bool = False


def image_files(folder: Path) -> list[Path]:
    """Return the images in a folder, in the order of their names."""
    return sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and p.is_file())


@lru_cache(maxsize=4)  # training loads every split
def common_form(paths: tuple[Path, ...]) -> Form:
    """Find a form for images that may differ: grey if all are; their own size if equal and small."""
    with ThreadPoolExecutor() as pool:
        found = set(pool.map(_mode_and_size, paths))
    grey = {mode for mode, _ in found} <= {"L", "1"}
    sizes = {size for _, size in found}
    alike = len(sizes) == 1 and max(next(iter(sizes))) <= SIDE
    return Form("L" if grey else "RGB", None if alike else (SIDE, SIDE), convert=True)


def _mode_and_size(path: Path) -> tuple[str, tuple[int, int]]:
    """Read the mode and the upright size from the first bytes of the file."""
    with _opened(path) as image:
        width, height = image.size
        turned = image.getexif().get(_ORIENTATION, 1) >= 5
        return image.mode, (height, width) if turned else (width, height)


def decoded(paths: Sequence[Path], form: Form) -> Tensor:
    """Return images (n, C, H, W), uint8, mapped from the cache; decode them if they are not there."""
    cache = platformdirs.user_cache_path("lipcert") / "images" / f"{_key(paths, form)}.npy"
    if not cache.is_file():
        _decode_to(cache, paths, form)
    # Copy on write: torch needs writable memory, and the file must not change.
    return torch.from_numpy(np.load(cache, mmap_mode="c"))


def _key(paths: Sequence[Path], form: Form) -> str:
    """Return a key that changes with the name, length or time of any file."""
    digest = hashlib.sha256(f"{form}\n".encode())
    for path in paths:
        status = path.stat()
        digest.update(f"{path.resolve()} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _decode_to(cache: Path, paths: Sequence[Path], form: Form) -> None:
    first = read_image(paths[0], form)
    cache.parent.mkdir(parents=True, exist_ok=True)
    part = cache.with_suffix(f".{os.getpid()}.part")
    shape = (len(paths), *first.shape)
    console = Console(stderr=True)
    try:
        images = np.lib.format.open_memmap(part, mode="w+", dtype=np.uint8, shape=shape)
        with ThreadPoolExecutor() as pool:
            each = pool.map(lambda path: read_image(path, form, first.shape), paths)
            shown = track(
                each, "decoding images", len(paths), console=console, disable=not console.is_terminal
            )
            for i, image in enumerate(shown):
                images[i] = image
        images.flush()
        part.replace(cache)
    finally:
        part.unlink(missing_ok=True)


def read_image(path: Path, form: Form, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Read the pixels of one file, (C, H, W); another `shape` is refused."""
    with _opened(path) as file:
        image = _converted(path, file, form)
        if form.size is not None and image.size != form.size:
            image = image.resize(form.size, Image.Resampling.BILINEAR)
        pixels = np.atleast_3d(np.asarray(image)).transpose(2, 0, 1)
    if shape is not None and pixels.shape != shape:
        found, expected = (f"{s[2]}×{s[1]}" for s in (pixels.shape, shape))
        raise InputError(f"{path}: {found} pixels, the first image has {expected}; set data.size=32")
    return pixels


def _converted(path: Path, image: Image.Image, form: Form) -> Image.Image:
    if form.convert:
        image = ImageOps.exif_transpose(image)
    if image.mode == form.mode:
        return image
    if not form.convert:
        raise InputError(f"{path}: {image.mode} image, expected {form.mode}; set data.convert=true")
    if image.mode in _DEEP:
        raise InputError(f"{path}: more than 8 bits per pixel ({image.mode}), expected 8")
    return image.convert(form.mode)


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """Open an image; any failure becomes a one-line error that names the file."""
    try:
        with Image.open(path) as image:
            yield image
    except InputError:
        raise
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise InputError(f"{path}: not a readable image ({str(error).partition(chr(10))[0]})") from None
