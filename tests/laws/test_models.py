"""What every registered model obeys; most of it is in `lipcert.laws.model_laws`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lipcert import InputError
from lipcert.laws import Law
from lipcert.laws.model_laws import MODEL_LAWS, ModelExample
from lipcert.models import MODELS, create
from tests.laws.obeyed import every_law

every_model = pytest.mark.parametrize("name", list(MODELS))


@every_law(MODEL_LAWS)
def test_law(law: Law[ModelExample], make: Callable[[], ModelExample]) -> None:
    law(make())


@every_model
@pytest.mark.parametrize("shape", [(), (0, 8, 8), (1, 0, 8), (-1,)])
def test_an_input_without_size_is_named(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="input_shape"):
        create(name, num_classes=2, input_shape=shape)
