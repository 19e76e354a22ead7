"""Find image files and read their pixels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image, ImageOps

from lipcert.errors import InputError, reason

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")

# Modes whose conversion to 8 bits would clip values.
_DEEP = ("I", "I;16", "I;16B", "I;16L", "F")
_ORIENTATION = 0x0112  # the tag in Exif for how the camera was held; from 5 on, turned by 90 degrees

Mode = Literal["RGB", "L"]


@dataclass(frozen=True)
class Form:
    """The form of images: `mode` RGB or L (grey) and `size` (width, height); without a size they must agree.

    `convert` converts other modes to this one, and rotates photographs upright. `crop` cuts the middle of the
    right shape out before an image is resized; otherwise it is stretched.
    """

    mode: Mode = "RGB"
    size: tuple[int, int] | None = None
    convert: bool = False
    crop: bool = False

    def __str__(self) -> str:
        """Return a text that names the form in caches, the same as before there were crops."""
        crop = ", crop=True" if self.crop else ""
        return f"Form(mode={self.mode!r}, size={self.size}, convert={self.convert}{crop})"


def is_image(path: Path) -> bool:
    """Return whether a file is an image by its name; hidden files are not, as macOS writes a ._x beside x."""
    return _is_image_name(path.name) and path.is_file()


def _is_image_name(name: str) -> bool:
    return not name.startswith(".") and os.path.splitext(name)[1].lower() in SUFFIXES


def image_files(folder: Path) -> list[Path]:
    """Return the images in a folder, in the order of their names."""
    with os.scandir(folder) as entries:  # knows what is a file without asking the disk for each
        names = [entry.name for entry in entries if _is_image_name(entry.name) and entry.is_file()]
    return [folder / name for name in sorted(names)]


def mode_and_size(path: Path) -> tuple[str, tuple[int, int]]:
    """Read the mode and the upright size from the first bytes of the file."""
    with _opened(path) as image:
        width, height = image.size
        turned = image.getexif().get(_ORIENTATION, 1) >= 5
        return image.mode, (height, width) if turned else (width, height)


def read_image(path: Path, form: Form) -> np.ndarray:
    """Read the pixels of one file: (C, H, W)."""
    with _opened(path) as file:
        image = _converted(path, file, form)
        if form.size is not None and image.size != form.size:
            image = _resized(image, form.size, form.crop)
        return np.atleast_3d(np.asarray(image)).transpose(2, 0, 1)


def _resized(image: Image.Image, size: tuple[int, int], crop: bool) -> Image.Image:
    if crop:
        return ImageOps.fit(image, size, Image.Resampling.BILINEAR)
    return image.resize(size, Image.Resampling.BILINEAR)


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
    except Exception as error:  # a damaged file may make a decoder of Pillow raise anything
        raise InputError(f"{path}: not a readable image ({reason(error)})") from None
