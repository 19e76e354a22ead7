"""Checkpoints cost a small part of the time where their number is left to us."""

from __future__ import annotations

import pytest

from lipcert.errors import InputError
from lipcert.recipes import read_recipe
from lipcert.train.cadence import SHARE, Cadence


@pytest.mark.parametrize("cost", [0.01, 1.0, 90.0])
@pytest.mark.parametrize("epoch_seconds", [0.5, 30.0, 600.0])
def test_writing_takes_its_share_at_most(cost: float, epoch_seconds: float) -> None:
    cadence, seconds, written = Cadence("auto"), 0.0, 0
    for epoch in range(1, 2001):
        seconds += epoch_seconds
        if cadence.is_due(epoch, seconds):
            cadence.saved(seconds, cost)
            seconds, written = seconds + cost, written + 1
    # The first one is free: nobody knows its cost before.
    assert (written - 1) * cost <= SHARE * seconds
    # Only ends of epochs count, so that up to half of the share is left over.
    assert written >= min(2000, 0.49 * SHARE * seconds / cost)


def test_a_number_counts_epochs_whatever_they_cost() -> None:
    cadence = Cadence(3)
    cadence.saved(1.0, 1e9)
    assert [epoch for epoch in range(1, 10) if cadence.is_due(epoch, 2.0)] == [3, 6, 9]


def test_recipes_take_auto_or_a_number() -> None:
    assert read_recipe("moons-cll", None, ["train.checkpoint_every=auto"]).train.checkpoint_every == "auto"
    assert read_recipe("cifar10-cpl-xl").train.checkpoint_every == "auto"
    for wrong in ("often", "0", "1.5"):
        with pytest.raises(InputError, match=r"train\.checkpoint_every"):
            read_recipe("moons-cll", None, [f"train.checkpoint_every={wrong}"])
