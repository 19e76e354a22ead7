"""The plan of a training: the order of samples, and the turns of layers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lipcert import InputError
from lipcert.data import Dataset
from tests.train.test_loop import plan


def test_every_seed_has_an_order_of_its_own() -> None:
    orders = {tuple(plan(seed=seed).batches(epoch)[0].tolist()) for seed in range(4) for epoch in range(4)}
    assert len(orders) == 16


def test_layers_take_turns() -> None:
    assert [plan(turns=3).turn(step) for step in range(4)] == [(0, 3), (1, 3), (2, 3), (0, 3)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"batch_size": 2.5}, "batch_size: expected a whole number >= 1, got 2.5"),
        ({"batch_size": 0}, "batch_size: expected a whole number >= 1, got 0"),
        ({"epochs": 1.5}, "epochs: expected a whole number >= 1"),
        ({"accumulate": "2"}, "accumulate: expected a whole number >= 1, got '2'"),
        ({"seed": "one"}, "seed: expected a whole number >= 0, got 'one'"),
        ({"validate_every": -1}, "validate_every: expected a whole number >= 0"),
        ({"model": "mlp"}, "model: expected an nn.Module, got 'mlp'"),
        ({"loss": "cll"}, "loss: expected a loss of lipcert, got str"),
        ({"train": ([0.0], [1])}, "train: expected a Dataset of lipcert, got tuple"),
        ({"val": "moons"}, "val: expected a Dataset of lipcert, got str"),
        ({"optimizer": "adam"}, "optimizer: expected a function of the parameters, got str"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_arguments_of_another_kind_are_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        plan(**changes)


def test_classes_that_are_there_weigh_the_same_together() -> None:
    y = torch.tensor([0] * 30 + [2] * 20)
    weights = plan(
        train=Dataset(torch.randn(50, 2), y, ("a", "none of it", "c")), balanced=True
    ).class_weights()
    assert weights is not None
    assert weights.tolist() == pytest.approx([50 / (2 * 30), 0.0, 50 / (2 * 20)])
    assert float(weights[y].mean()) == pytest.approx(1.0)
    assert plan().class_weights() is None
