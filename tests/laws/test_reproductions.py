"""What every registered reproduction obeys: `lipcert.laws.reproduction_laws`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lipcert.laws import Law
from lipcert.laws.reproduction_laws import REPRODUCTION_LAWS
from lipcert.paper import REPRODUCTIONS
from lipcert.paper.definition import Reproduction
from tests.laws.obeyed import every_law


@every_law(REPRODUCTION_LAWS)
def test_law(law: Law[Reproduction], make: Callable[[], Reproduction]) -> None:
    law(make())


@pytest.mark.parametrize("name", list(REPRODUCTIONS))
def test_its_name_is_that_of_its_registration(name: str) -> None:
    assert REPRODUCTIONS.create(name).name == name
