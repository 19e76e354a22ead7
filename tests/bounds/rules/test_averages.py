"""Averages whose windows follow from the input: their constants against the matrix itself."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from lipcert import UnknownBoundError
from lipcert.bounds import upper
from lipcert.bounds.rules.averages import Mean


def true_norm(module: nn.Module, shape: tuple[int, ...]) -> float:
    matrix = torch.func.jacrev(lambda v: module(v[None])[0])(torch.zeros(shape, dtype=torch.float64))
    return float(torch.linalg.matrix_norm(matrix.reshape(-1, math.prod(shape)), 2))


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("output", [1, 2, 3, 4, 5, 7, 11])
def test_windows_of_any_size(size: int, output: int) -> None:
    """Torch's windows overlap where the output does not divide the input, and repeat where it is larger."""
    pool, shape = nn.AdaptiveAvgPool2d((output, 2)), (1, size, 6)
    truth, bound = true_norm(pool, shape), upper(pool, shape).value
    assert truth * (1 - 1e-12) <= bound <= truth * 1.3
    if size % output == 0:
        assert bound == pytest.approx(truth, rel=1e-12)


def test_a_mean_divides_by_the_root_of_its_entries() -> None:
    assert upper(nn.Sequential(Mean(2, 3)), (3, 4, 4)).value == pytest.approx(0.25, rel=1e-12)
    assert upper(nn.Sequential(Mean(-1, -2, keepdim=True)), (3, 4, 4)).value >= 0.25
    assert upper(nn.AdaptiveAvgPool2d(1), (3, 4, 4)).value == pytest.approx(0.25, rel=1e-12)
    assert upper(nn.AdaptiveAvgPool2d((None, None)), (3, 4, 4)).value == 1


@pytest.mark.parametrize("dims", [(0,), (-3,), (1, 1), (1, -2), (5,), ()])
def test_a_mean_that_mixes_samples_is_refused(dims: tuple[int, ...]) -> None:
    with pytest.raises((UnknownBoundError, ValueError)):
        upper(nn.Sequential(Mean(*dims, keepdim=True)), (4, 4))
