"""The plan of a training: the order of samples, and the turns of layers."""

from __future__ import annotations

from tests.train.test_loop import plan


def test_every_seed_has_an_order_of_its_own() -> None:
    orders = {tuple(plan(seed=seed).batches(epoch)[0].tolist()) for seed in range(4) for epoch in range(4)}
    assert len(orders) == 16


def test_layers_take_turns() -> None:
    assert [plan(turns=3).turn(step) for step in range(4)] == [(0, 3), (1, 3), (2, 3), (0, 3)]
