"""Softmax and its logarithm for any number of classes: constants that hold and are approached."""

from __future__ import annotations

import math
import warnings

import pytest
import torch
from torch import Tensor, nn

import lipcert
from lipcert.bounds import upper


def steepest(module: nn.Module, x: Tensor) -> float:
    """The largest norm of a Jacobian at these points."""
    jacobians = torch.vmap(torch.func.jacrev(lambda v: module(v[None])[0]))(x)
    return float(torch.linalg.matrix_norm(jacobians, 2).max())


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_softmax_stretches_by_at_most_a_half(classes: int) -> None:
    module = nn.Softmax(dim=1)
    scale = torch.logspace(-1, 2, 30, dtype=torch.float64)[:, None]
    x = scale * torch.randn(30, classes, dtype=torch.float64)
    peak = torch.full((1, classes), -40.0, dtype=torch.float64)
    peak[0, :2] = 0.0  # two classes share the probability
    found = max(steepest(module, x), steepest(module, peak))
    bound = upper(module, (classes,)).value
    assert 0.5 <= bound < 0.5 + 1e-15
    assert 0.4999 < found <= bound * (1 + 1e-15)


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_log_softmax_stretches_by_at_most_the_root_of_the_classes(classes: int) -> None:
    module = nn.LogSoftmax(dim=1)
    x = 10 * torch.randn(30, classes, dtype=torch.float64)
    x[0], x[0, 0] = 0.0, 50.0  # one class has all the probability
    bound = upper(module, (classes,)).value
    assert bound == pytest.approx(math.sqrt(classes), rel=1e-12)
    assert bound * 0.9999 < steepest(module, x) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("last", [nn.Softmax(dim=1), nn.LogSoftmax(dim=-1)], ids=repr)
@pytest.mark.parametrize("rounding", ["float64", "float32", "ignored"])
def test_a_classifier_that_ends_in_it(last: nn.Module, rounding: str) -> None:
    """It is certified as it is; without its last layer the classes are the same and radii no smaller."""
    torch.manual_seed(0)
    logits = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)).eval()
    x = torch.randn(32, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = lipcert.certifier(nn.Sequential(logits, last), (4,))(x, rounding)  # type: ignore[arg-type]
    bare = lipcert.certifier(logits, (4,))(x, rounding)  # type: ignore[arg-type]
    assert torch.equal(whole.prediction, bare.prediction)
    assert (whole.radius > 0).sum() > 20
    assert (whole.radius <= bare.radius * (1 + 1e-3) + 1e-5).all()
