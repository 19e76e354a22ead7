"""Image files decoded once, into one memory-mapped array in the user's cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import platformdirs
import torch
from PIL import Image, UnidentifiedImageError
from rich.console import Console
from rich.progress import track
from torch import Tensor

from lipcert.errors import InputError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")


def image_files(folder: Path) -> list[Path]:
    """The images in a folder, in the order of their names."""
    return sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and p.is_file())


def decoded(paths: Sequence[Path], *, convert: bool, size: int | None) -> Tensor:
    """(n, 3, H, W) uint8, mapped from the cache; decoded if it is not there.

    `convert` makes grey, palette and transparent images RGB, `size` makes them squares of that side. Without
    them every image must be RGB, and of the size of the first.
    """
    cache = platformdirs.user_cache_path("lipcert") / "images" / f"{_key(paths, convert, size)}.npy"
    if not cache.is_file():
        _decode_to(cache, paths, convert, size)
    # Copy on write: torch wants writable memory, and the file stays as it is.
    return torch.from_numpy(np.load(cache, mmap_mode="c"))


def _key(paths: Sequence[Path], convert: bool, size: int | None) -> str:
    """Changes with any file: its name, length or time."""
    digest = hashlib.sha256(f"{convert} {size}\n".encode())
    for path in paths:
        status = path.stat()
        digest.update(f"{path.resolve()} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _decode_to(cache: Path, paths: Sequence[Path], convert: bool, size: int | None) -> None:
    first = _decode(paths[0], convert, size, None)
    cache.parent.mkdir(parents=True, exist_ok=True)
    part = cache.with_suffix(f".{os.getpid()}.part")
    shape = (len(paths), *first.shape)
    console = Console(stderr=True)
    try:
        images = np.lib.format.open_memmap(part, mode="w+", dtype=np.uint8, shape=shape)
        with ThreadPoolExecutor() as pool:
            each = pool.map(lambda path: _decode(path, convert, size, first.shape), paths)
            shown = track(
                each, "decoding images", len(paths), console=console, disable=not console.is_terminal
            )
            for i, image in enumerate(shown):
                images[i] = image
        images.flush()
        part.replace(cache)
    finally:
        part.unlink(missing_ok=True)


def _decode(path: Path, convert: bool, size: int | None, shape: tuple[int, ...] | None) -> np.ndarray:
    try:
        with Image.open(path) as file:
            image: Image.Image = file
            if image.mode != "RGB":
                if not convert:
                    raise InputError(f"{path}: {image.mode} image, expected RGB; data.convert=true converts")
                image = image.convert("RGB")
            if size is not None and image.size != (size, size):
                image = image.resize((size, size), Image.Resampling.BILINEAR)
            pixels = np.asarray(image).transpose(2, 0, 1)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise InputError(f"{path}: not a readable image ({str(error).partition(chr(10))[0]})") from None
    if shape is not None and pixels.shape != shape:
        found, expected = (f"{s[2]}×{s[1]}" for s in (pixels.shape, shape))
        raise InputError(f"{path}: {found} pixels, the first image has {expected}; data.size=32 resizes")
    return pixels
