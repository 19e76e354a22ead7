"""The radii of single images, on the page and in the picture."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
import torch

from lipcert.data import Dataset
from lipcert.recipes.splits import Splits
from lipcert.report.report_inputs import Finished
from lipcert.report.run_details import card_of, images_of
from lipcert.report.run_figures import image_title
from lipcert.runs.samples import Samples

DATA = Dataset(torch.zeros(1, 3, 2, 2, dtype=torch.uint8), torch.tensor([0]), ("cat", "dog"))
FOUND = Samples(
    label=torch.tensor([0]),
    prediction=torch.tensor([0]),
    radius=torch.tensor([0.19999], dtype=torch.float64),
    rival=torch.tensor([1]),
)


@pytest.mark.parametrize(
    ("shape", "dtype"), [((1, 2), torch.float32), ((1, 3, 2, 2), torch.float32), ((1, 4), torch.uint8)]
)
def test_samples_that_are_no_images_have_no_pictures(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    data = Dataset(torch.zeros(shape, dtype=dtype), torch.tensor([0]), DATA.classes)
    assert images_of(run_on(data), splits_with(data)) == ([], "")


def test_an_image_has_a_picture() -> None:
    rows, why = images_of(run_on(DATA), splits_with(DATA))
    assert why == ""
    assert [card.radius for row in rows for card in row.cards]


def run_on(data: Dataset) -> Finished:
    return cast(Finished, SimpleNamespace(recipe=None, split="test", samples=FOUND))


def splits_with(data: Dataset) -> Splits:
    return cast(Splits, SimpleNamespace(of=lambda recipe, split: data))


def test_a_radius_is_never_printed_larger_than_it_is() -> None:
    assert card_of(DATA, FOUND, 0).radius == "0.1999"
    assert image_title(DATA.classes, FOUND, 0) == "cat\n0.1999\nnot dog"
