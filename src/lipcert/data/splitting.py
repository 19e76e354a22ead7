"""Hold validation samples out of the training samples: seeded, and the same share of every class."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from lipcert.errors import InputError


def part(y: Tensor, split: str, shares: Mapping[str, float], seed: int) -> Tensor:
    """Return the indices of one split; the others' `shares` are held out in turn, training is the rest."""
    rest = torch.arange(len(y))
    for name, share in shares.items():
        stays, held = hold_out(y[rest], share, seed)
        if split == name:
            return rest[held]
        rest = rest[stays]
    return rest


def hold_out(y: Tensor, share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Return the indices that stay and the indices held out, both ascending; every class has some of each.

    Example:
        >>> stays, held = hold_out(torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]), share=0.25, seed=0)
        >>> len(stays), len(held)
        (6, 2)
    """
    if not 0 < share < 1:
        raise InputError(f"val: expected a share between 0 and 1, got {share}")
    # scikit-learn's stratified splits draw otherwise: published runs and their certificates keep these.
    generator = np.random.default_rng(seed)
    held = torch.zeros(len(y), dtype=torch.bool)
    for label in np.unique(y.numpy()).tolist():
        members = (y == label).nonzero().flatten()
        if len(members) < 2:
            raise InputError(f"data: class {label} has a single sample, too few for a validation split")
        count = min(max(round(share * len(members)), 1), len(members) - 1)
        held[members[torch.from_numpy(generator.permutation(len(members))[:count])]] = True
    return (~held).nonzero().flatten(), held.nonzero().flatten()
