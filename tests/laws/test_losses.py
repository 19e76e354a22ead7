"""What every registered loss obeys; most of it is in `lipcert.laws.loss_laws`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from lipcert import InputError, PairLip
from lipcert.laws import Law
from lipcert.laws.loss_laws import LOSS_LAWS, problem
from lipcert.losses import LOSSES, Loss
from tests.laws.obeyed import every_law

every_loss = pytest.mark.parametrize("name", list(LOSSES))


@every_law(LOSS_LAWS)
def test_law(law: Law[Loss], make: Callable[[], Loss]) -> None:
    law(make())


@every_loss
def test_bad_arguments_are_named(name: str) -> None:
    loss = LOSSES.example(name)
    logits, labels, lip = problem()
    with pytest.raises(InputError, match=r"labels: expected 0\.\.4, got 5"):
        loss(logits, torch.full_like(labels, 5), lip)
    with pytest.raises(InputError, match=r"labels: expected 0\.\.4, got -100"):
        loss(logits, torch.full_like(labels, -100), lip)
    with pytest.raises(InputError, match=r"labels: expected shape \(8,\)"):
        loss(logits, labels[:3], lip)
    for wrong in (labels.float(), labels.int(), labels.byte()):
        with pytest.raises(InputError, match="int64"):
            loss(logits, wrong, lip)
    with pytest.raises(InputError, match=r"logits: expected shape"):
        loss(logits[:, :1], labels * 0, lip)
    with pytest.raises(InputError, match="head rows"):
        loss(logits, labels, PairLip(lip.features, lip.head[:3]))
    with pytest.raises(InputError, match="head rows"):
        loss(logits, labels, PairLip(lip.features, lip.head[:, 0]))
    with pytest.raises(InputError, match="feature constant"):
        loss(logits, labels, PairLip(lip.features.expand(3), lip.head))
