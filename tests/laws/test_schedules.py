"""What every registered schedule obeys: `lipcert.laws.schedule_laws`."""

from __future__ import annotations

from collections.abc import Callable

from lipcert.laws import Law
from lipcert.laws.schedule_laws import SCHEDULE_LAWS
from lipcert.train.schedules import Schedule
from tests.laws.obeyed import every_law


@every_law(SCHEDULE_LAWS)
def test_law(law: Law[Schedule], make: Callable[[], Schedule]) -> None:
    law(make())
