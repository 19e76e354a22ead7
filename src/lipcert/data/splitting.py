"""Hold validation samples out of the training samples: seeded, and the same share of every class."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from lipcert.data.base import Split
from lipcert.errors import InputError

_NOUNS = {"val": "validation", "test": "test"}


def part(y: Tensor, split: Split, shares: Mapping[Split, float], seed: int) -> Tensor:
    """Return the indices of one split; the others' `shares` are held out in turn, training is the rest.

    A share of 0 holds nothing out: training has it all; without `val` there is nothing to choose by. A share
    of 1 takes all that is left.
    """
    rest = torch.arange(len(y))
    for name, share in shares.items():
        if share == 0:
            if split == name:
                raise InputError(f"{name}: there is no {_NOUNS[name]} split, because its share is 0")
            continue
        if share == 1:
            if split == name:
                return rest
            raise InputError(f"{split}: there is no such split, because the share of {name} is 1")
        stays, held = hold_out(y[rest], share, seed, name)
        if split == name:
            return rest[held]
        rest = rest[stays]
    return rest


def hold_out(y: Tensor, share: float, seed: int, name: str = "val") -> tuple[Tensor, Tensor]:
    """Return the indices that stay and the indices held out, both ascending; every class has some of each.

    `name` is the split that is held out, which an error names.

    Example:
        >>> stays, held = hold_out(torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]), share=0.25, seed=0)
        >>> len(stays), len(held)
        (6, 2)
    """
    if not 0 < share < 1:
        raise InputError(f"{name}: expected a share between 0 and 1, got {share}")
    # scikit-learn's stratified splits draw otherwise: published runs and their certificates keep these.
    generator = np.random.default_rng(seed)
    held = torch.zeros(len(y), dtype=torch.bool)
    for label in np.unique(y.numpy()).tolist():
        members = (y == label).nonzero().flatten()
        if len(members) < 2:
            raise InputError(
                f"{name}: class {label} has a single sample, too few to hold one out; add samples of it"
            )
        count = min(max(round(share * len(members)), 1), len(members) - 1)
        held[members[torch.from_numpy(generator.permutation(len(members))[:count])]] = True
    return (~held).nonzero().flatten(), held.nonzero().flatten()
