"""What every registered optimiser obeys: `lipcert.laws.optimizer_laws`."""

from __future__ import annotations

from collections.abc import Callable

from lipcert.laws import Law
from lipcert.laws.optimizer_laws import OPTIMIZER_LAWS, Optimizer
from tests.laws.obeyed import every_law


@every_law(OPTIMIZER_LAWS)
def test_law(law: Law[Optimizer], make: Callable[[], Optimizer]) -> None:
    law(make())
