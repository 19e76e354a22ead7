"""Check that a batch can be divided into pieces: by `accumulate`, and among processes."""

from __future__ import annotations

from torch import nn

from lipcert.bounds.small_pieces import LEAST, batch_norms_in
from lipcert.errors import InputError
from lipcert.losses import Loss


def check_division(loss: Loss, model: nn.Module, batch_size: int, pieces: int) -> None:
    """Raise if the result would depend on the pieces, or if they are too small for batch norm."""
    if pieces > 1 and not loss.sample_by_sample:
        name = type(loss).__name__
        raise InputError(
            f"loss: {name} compares the samples of a batch, which is divided into {pieces} pieces here; "
            "train with accumulate: 1 in one process"
        )
    if batch_norms_in(model) and batch_size < LEAST * pieces:
        raise InputError(
            f"batch_size: batch norm needs at least {LEAST * pieces} ({LEAST} samples per piece), "
            f"got {batch_size}"
        )
