"""Your own arrays, from an .npz file or in memory."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lipcert.data.base import DATASETS, Dataset, Split
from lipcert.data.examples import write_arrays
from lipcert.data.splitting import part
from lipcert.errors import InputError

# Labels beyond this are no numbers of classes, but keys of something else.
_MOST_CLASSES = 1_000_000


@DATASETS.register("arrays", example=write_arrays)
def arrays(
    split: Split = "train",
    *,
    path: str | None = None,
    x: Any = None,
    y: Any = None,
    classes: tuple[str, ...] | None = None,
    val: float = 0.1,
    test: float = 0.1,
    seed: int = 0,
) -> Dataset:
    """Load samples and labels 0..N−1: x and y, or arrays x, y (or x_train, y_train, …) in an .npz file.

    uint8 images (n, channels, height, width) are scaled to [0, 1]; floats stay unchanged. The shares `val`
    and `test` are held out, equally of every class, where the file has no arrays for them.

    Example:
        >>> from lipcert.data import load
        >>> data = load("arrays", x=np.random.rand(20, 4), y=np.arange(20) % 2)
        >>> data.x.shape, data.classes
        (torch.Size([16, 4]), ('0', '1'))
    """
    if (path is None) == (x is None) or (x is None) != (y is None):
        raise InputError("arrays: expected either a path, or x and y")
    found = {"x": x, "y": y} if path is None else _read(Path(path))
    suffix = "" if "x" in found else "_train"
    if split != "train" and f"x_{split}" in found:
        return _dataset(found, f"_{split}", classes, path)
    whole = _dataset(found, suffix, classes, path)
    asked: dict[Split, float] = {"test": test, "val": val}
    shares = {name: share for name, share in asked.items() if f"x_{name}" not in found}
    return whole.subset(part(whole.y, split, shares, seed))


def _read(path: Path) -> dict[str, np.ndarray]:
    expected = "expected an .npz file as numpy.savez writes it, without objects"
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise InputError(f"path: {path}: {expected}, found a single array")
        with file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise InputError(f"path: {path.absolute()}: no such file; {expected}") from None
    except InputError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, AttributeError):
        # What NumPy says advises to read the file unsafely.
        raise InputError(f"path: {path}: {expected}, found something else or a part of one") from None


def _dataset(
    found: dict[str, Any], suffix: str, classes: tuple[str, ...] | None, path: str | None
) -> Dataset:
    where = path or "arrays"
    if f"x{suffix}" not in found or f"y{suffix}" not in found:
        raise InputError(
            f"{where}: expected x and y, or x_train and y_train, found {', '.join(found) or 'nothing'}"
        )
    x, y = (_tensor(found[f"{name}{suffix}"], f"{where}: {name}{suffix}") for name in ("x", "y"))
    if x.dtype == torch.uint8 and x.ndim == 4 and x.shape[-1] in (1, 3) and x.shape[1] not in (1, 3):
        raise InputError(f"{where}: images of shape {tuple(x.shape[1:])}: expected channels first")
    if x.dtype not in (torch.uint8, torch.float32):
        x = x.float()
    if y.is_floating_point() or y.ndim != 1:
        raise InputError(f"{where}: expected whole-number labels (n,), got {y.dtype} {tuple(y.shape)}")
    y = y.long()
    if len(y) and int(y.min()) < 0:
        raise InputError(f"{where}: expected labels from 0 on, got {int(y.min())}")
    return Dataset(x, y, _names(classes, int(y.max()) if len(y) else -1, where))


def _names(given: Sequence[Any] | None, last: int, where: str) -> tuple[str, ...]:
    """Return the names of the classes, their numbers if none are given."""
    if isinstance(given, str):
        raise InputError(f"classes: expected one name per class, got {given!r}")
    if given is not None:
        return tuple(map(str, given))
    if last >= _MOST_CLASSES:
        raise InputError(
            f"{where}: expected labels 0..N−1 of N classes, got {last}; number the classes from 0"
        )
    return tuple(map(str, range(last + 1)))


def _tensor(values: Any, where: str) -> Tensor:
    """Return real numbers as a tensor."""
    try:
        found = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError):
        kind = getattr(values, "dtype", type(values).__name__)
        raise InputError(f"{where}: expected numbers, got {kind}") from None
    if found.is_complex():
        raise InputError(f"{where}: expected real numbers, got {found.dtype}")
    return found
