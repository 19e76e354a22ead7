"""Data sets: what is not one is named; two moons have the margin they claim."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from lipcert import InputError
from lipcert.data import Dataset, load


@pytest.mark.parametrize(
    ("x", "y", "classes", "message"),
    [
        (torch.zeros(0, 2), torch.zeros(0).long(), ("a", "b"), "n > 0"),
        (torch.zeros(4), torch.zeros(4).long(), ("a", "b"), "expected samples of shape"),
        (torch.zeros(4, 2), torch.tensor([0, 1, 2, 0]), ("a", "b"), r"labels 0\.\.1, got 2"),
        (torch.zeros(4, 2), torch.tensor([0, 1, -1, 0]), ("a", "b"), "got -1"),
        (torch.zeros(4, 2), torch.tensor([0, 1, 0]), ("a", "b"), "expected 4 int64 labels"),
        (torch.zeros(4, 2), torch.tensor([0.0, 1, 0, 1]), ("a", "b"), "int64"),
        (torch.zeros(4, 2), torch.tensor([0, 1, 0, 1]), ("a",), "at least 2 classes"),
        (torch.full((4, 2), math.nan), torch.tensor([0, 1, 0, 1]), ("a", "b"), "finite"),
    ],
)
def test_what_is_not_a_data_set_is_named(
    x: Tensor, y: Tensor, classes: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Dataset(x, y, classes)


def test_moons_have_a_margin_of_three_tenths() -> None:
    """Arcs 0.5 apart, noise within 0.1 of each: no two points of different classes are nearer than 0.3."""
    nearest = math.inf
    for split in ("train", "val"):
        data = load("moons", split=split, train=2000, val=4000)
        upper, lower = data.x[data.y == 0].double(), data.x[data.y == 1].double()
        assert len(upper) == len(lower)
        nearest = min(nearest, float(torch.cdist(upper, lower).min()))
        arc = upper - upper / upper.norm(dim=1, keepdim=True)
        assert arc.norm(dim=1).max() < 0.1 + 1e-6 + 0.02  # around the unit circle, its ends included
    assert 0.3 - 1e-6 <= nearest < 0.36


def test_moons_noise_is_uniform_over_the_disc() -> None:
    flat = load("moons", split="val", val=20_000, noise=0.0)
    noisy = load("moons", split="val", val=20_000, noise=0.1)
    radius = (noisy.x - flat.x).norm(dim=1).double() / 0.1
    assert float(radius.max()) <= 1 + 1e-5
    # Half of a disc lies within 1/√2 of its centre.
    assert float((radius < math.sqrt(0.5)).double().mean()) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "dev"}, "split: expected one of train, val, test"),
        ({"train": 1}, "train: expected at least 2"),
        ({"noise": -0.1}, "noise"),
        ({"noise": math.nan}, "noise"),
    ],
)
def test_moons_that_cannot_be_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load("moons", **arguments)  # type: ignore[arg-type]


def test_an_unknown_data_set_is_named() -> None:
    with pytest.raises(InputError, match=r"unknown data set 'suns'; known: .*moons"):
        load("suns")
