"""The exponential for training: torch's values and gradients, also where no number may be read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

from lipcert.nn.bases.exponential import exponential
from lipcert.waiting import as_on_an_accelerator

PLACES = {"reading": contextlib.nullcontext, "waiting": as_on_an_accelerator}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.3, 1.0, 30.0])
def test_values_and_gradients_are_those_of_torch(scale: float, place: Callable[[], Any]) -> None:
    torch.manual_seed(0)
    raw = scale * torch.randn(9, 9, dtype=torch.float64)
    a = (raw - raw.T).requires_grad_()
    with place():
        ours = exponential(a)
    theirs = torch.linalg.matrix_exp(a)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9 * max(1.0, scale))
    weights = torch.randn_like(ours)
    slope, expected = (torch.autograd.grad((f * weights).sum(), a)[0] for f in (ours, theirs))
    torch.testing.assert_close(slope, expected, rtol=1e-7, atol=1e-7)


def test_too_large_to_square_without_reading_is_no_number() -> None:
    a = torch.tensor([[0.0, -2000.0], [2000.0, 0.0]])
    assert exponential(a).isfinite().all()
    with as_on_an_accelerator():
        assert exponential(a / 2).isfinite().all()
        assert exponential(a).isnan().all()
