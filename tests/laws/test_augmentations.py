"""What every registered augmentation obeys; most of it is in `lipcert.laws.augmentation_laws`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from lipcert import InputError
from lipcert.data.augmentations import AUGMENTATIONS
from lipcert.data.augmentations.base import Augmentation
from lipcert.laws import Law
from lipcert.laws.augmentation_laws import AUGMENTATION_LAWS
from tests.laws.obeyed import every_law

every_augmentation = pytest.mark.parametrize("name", list(AUGMENTATIONS))


@every_law(AUGMENTATION_LAWS)
def test_law(law: Law[Augmentation], make: Callable[[], Augmentation]) -> None:
    law(make())


@every_augmentation
@pytest.mark.parametrize("x", [torch.zeros(2, 3, 4, 4), torch.zeros(3, 4, 4, dtype=torch.uint8)], ids=str)
def test_what_are_no_images_is_refused(name: str, x: Tensor) -> None:
    augmentation = AUGMENTATIONS.example(name)
    with pytest.raises(InputError, match="uint8 images"):
        augmentation(x, augmentation.draws(len(x), seed=0, epoch=0))
