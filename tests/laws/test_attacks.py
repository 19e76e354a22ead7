"""What every registered attack obeys: `lipcert.laws.attack_laws`."""

from __future__ import annotations

from collections.abc import Callable

from lipcert.attack import ATTACKS, Attack
from lipcert.laws import Law
from lipcert.laws.attack_laws import ATTACK_LAWS
from tests.laws.obeyed import every_law

# Attacks whose laws are in the slow suite, and why.
SLOW = {"brendel-bethge": "numba compiles it for a minute"}


@every_law(ATTACK_LAWS, SLOW)
def test_law(law: Law[Attack], make: Callable[[], Attack]) -> None:
    law(make())


def test_slow_attacks_exist() -> None:
    assert set(SLOW) <= set(ATTACKS)
