"""What every registered data set obeys: `lipcert.laws.data_laws`."""

from __future__ import annotations

from collections.abc import Callable

from lipcert.laws import Law
from lipcert.laws.data_laws import DATA_LAWS, Loader
from tests.laws.obeyed import every_law


@every_law(DATA_LAWS)
def test_law(law: Law[Loader], make: Callable[[], Loader]) -> None:
    law(make())
