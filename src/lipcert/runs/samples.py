"""Certificates sample by sample, as a file: what curves, tables by class and pictures are made of."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from lipcert.atomic import write_atomically
from lipcert.certificates.certificate import Certificate
from lipcert.data import Dataset
from lipcert.errors import InputError

_PARTS = ("label", "prediction", "radius", "rival")


def save_certificates(path: Path, splits: Mapping[str, tuple[Dataset, Certificate]]) -> None:
    """label, prediction, radius and rival of every sample, as SPLIT_label and so on, in an .npz file."""
    arrays: dict[str, np.ndarray] = {}
    for name, (data, certificate) in splits.items():
        columns = (data.y, certificate.prediction, certificate.radius, certificate.rival)
        arrays |= {f"{name}_{part}": c.numpy() for part, c in zip(_PARTS, columns, strict=True)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    write_atomically(path, buffer.getvalue())


def load_certificates(path: Path, split: str) -> dict[str, torch.Tensor]:
    """The columns of one split."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {part: torch.from_numpy(file[f"{split}_{part}"]) for part in _PARTS}
    except KeyError:
        raise InputError(f"{path}: holds no certificates of the split {split}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError):
        raise InputError(f"{path}: cut short, or no .npz file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
