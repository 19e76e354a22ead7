"""Optimisers by name: numbers that none can have are refused by all."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from lipcert.errors import InputError
from lipcert.train.optimizers import OPTIMIZERS


@pytest.mark.parametrize("name", list(OPTIMIZERS))
@pytest.mark.parametrize(
    ("key", "value"),
    [("lr", 0.0), ("lr", -1.0), ("lr", math.inf), ("lr", math.nan), ("weight_decay", -1e-9)],
)
def test_impossible_numbers_are_refused(name: str, key: str, value: float) -> None:
    with pytest.raises(InputError, match=f"{key}: expected a number"):
        OPTIMIZERS.create(name, parameters=[nn.Parameter(torch.zeros(2, 2))], **{key: value})
