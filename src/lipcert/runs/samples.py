"""Certificates sample by sample, as a file for curves, tables by class and pictures."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lipcert.atomic import write_atomically
from lipcert.certificates.certificate import Certificate
from lipcert.data import Dataset
from lipcert.data.base import Split
from lipcert.errors import InputError


@dataclass(frozen=True)
class Samples:
    """Label, prediction, certified radius and nearest rival of every sample of a split."""

    label: Tensor  # (B,)
    prediction: Tensor  # (B,)
    radius: Tensor  # (B,)
    rival: Tensor  # (B,)

    @property
    def correct(self) -> Tensor:
        """Return whether the prediction is the label, per sample."""
        return self.prediction == self.label

    @property
    def robust(self) -> Tensor:
        """Return the radii of correct predictions, 0 for the others."""
        return torch.where(self.correct, self.radius, 0.0)


_PARTS = tuple(f.name for f in fields(Samples))


def save_samples(path: Path, splits: Mapping[Split, tuple[Dataset, Certificate]]) -> None:
    """Write label, prediction, radius and rival of every sample as SPLIT_label and so on to an .npz file."""
    arrays: dict[str, np.ndarray] = {}
    for name, (data, certificate) in splits.items():
        columns = (data.y, certificate.prediction, certificate.radius, certificate.rival)
        arrays |= {f"{name}_{part}": c.numpy() for part, c in zip(_PARTS, columns, strict=True)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    write_atomically(path, buffer.getvalue())


def load_samples(path: Path, split: Split) -> Samples:
    """Return the samples of one split."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return Samples(*(torch.from_numpy(file[f"{split}_{part}"]) for part in _PARTS))
    except KeyError:
        raise InputError(f"{path}: holds no certificates of the split {split}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError):
        raise InputError(f"{path}: cut short, or no .npz file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
