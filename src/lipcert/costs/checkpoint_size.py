"""The exact size of a checkpoint, from shapes: torch writes the file without its numbers into a counter."""

from __future__ import annotations

import io
from typing import Any, BinaryIO, cast

import torch
from torch import Tensor
from torch.serialization import skip_data
from torch.utils._pytree import tree_map

from lipcert.data.sizes import Size
from lipcert.recipes import Recipe
from lipcert.runs.checkpoint import Checkpoint
from lipcert.train.random_states import random_states


class _Counter(io.RawIOBase):
    """A file that keeps nothing but its length."""

    def __init__(self) -> None:
        super().__init__()
        self.length = 0

    def write(self, piece: Any) -> int:
        """Count a piece."""
        self.length += len(piece)
        return len(piece)

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the place of the next piece."""
        return self.length

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move on, as torch does where it would write numbers."""
        self.length = offset if whence == io.SEEK_SET else self.length + offset
        return self.length


def checkpoint_bytes(recipe: Recipe, state: dict[str, Any], steps: int, size: Size) -> int:
    """Return the bytes of the last checkpoint of a training on one device."""
    bounded, optimizer, average = state["bounded"], state["optimizer"], state["average"]
    fused = optimizer.state_dict()
    for group in fused["param_groups"]:
        group.update({"fused": True, "foreach": None} if "fused" in group else {})
    made: dict[int, Tensor] = {}
    with torch.device("cpu"), skip_data():
        checkpoint = Checkpoint(
            step=steps,
            seconds=1.0,
            model=dict(bounded.state_dict()),
            optimizer=fused,
            average=average,
            random=random_states(torch.device("cpu")),
            scaler={},
            losses=torch.zeros(-(-size.samples // recipe.train.batch_size), dtype=torch.float64),
            correct=0,
        )
        counter = _Counter()
        torch.save(tree_map(lambda leaf: _unfilled(leaf, made), dict(checkpoint)), cast(BinaryIO, counter))
    return counter.length


def _unfilled(leaf: Any, made: dict[int, Tensor]) -> Any:
    """Return a tensor on the CPU whose memory is never touched, so that the system does not provide it."""
    if not isinstance(leaf, Tensor) or not leaf.is_meta:
        return leaf
    key = id(leaf.untyped_storage())
    if key not in made:
        made[key] = torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="cpu")
    return made[key]
