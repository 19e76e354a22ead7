"""What every registered augmentation obeys."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lipcert import InputError
from lipcert.data.augmentations import AUGMENTATIONS

every_augmentation = pytest.mark.parametrize("name", list(AUGMENTATIONS))
shapes = pytest.mark.parametrize(
    "shape", [(16, 3, 12, 12), (5, 1, 8, 10), (1, 4, 7, 7), (0, 3, 8, 8), (0, 1, 8, 8)], ids=str
)


def pictures(*shape: int) -> Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8)


@every_augmentation
@shapes
def test_images_stay_images(name: str, shape: tuple[int, ...]) -> None:
    augmentation, x = AUGMENTATIONS.example(name), pictures(*shape)
    before = x.clone()
    found = augmentation(x, augmentation.draws(len(x), seed=1, epoch=2))
    assert found.shape == x.shape
    assert found.dtype == torch.float32
    assert ((found >= 0) & (found <= 1)).all()
    assert torch.equal(x, before)


@every_augmentation
def test_draws_are_a_function_of_seed_and_epoch(name: str) -> None:
    augmentation = AUGMENTATIONS.example(name)
    draws = augmentation.draws(9, seed=1, epoch=2)
    assert draws.shape == (9, augmentation.chances)
    assert draws.dtype == torch.float32
    assert ((draws >= 0) & (draws < 1)).all()
    assert torch.equal(draws, augmentation.draws(9, seed=1, epoch=2))
    assert not torch.equal(draws, augmentation.draws(9, seed=2, epoch=2))
    assert not torch.equal(draws, augmentation.draws(9, seed=1, epoch=3))


@every_augmentation
def test_a_sample_depends_on_its_own_draws_alone(name: str) -> None:
    augmentation, x = AUGMENTATIONS.example(name), pictures(8, 3, 12, 12)
    draws = augmentation.draws(8, seed=0, epoch=0)
    whole = augmentation(x, draws)
    alone = torch.cat([augmentation(x[i : i + 1], draws[i : i + 1]) for i in range(8)])
    torch.testing.assert_close(alone, whole)
    state = torch.get_rng_state()
    assert torch.equal(augmentation(x, draws), whole)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(whole, x.float() / 255)


@every_augmentation
@pytest.mark.parametrize("x", [torch.zeros(2, 3, 4, 4), torch.zeros(3, 4, 4, dtype=torch.uint8)], ids=str)
def test_what_are_no_images_is_refused(name: str, x: Tensor) -> None:
    augmentation = AUGMENTATIONS.example(name)
    with pytest.raises(InputError, match="uint8 images"):
        augmentation(x, augmentation.draws(len(x), seed=0, epoch=0))


@every_augmentation
@pytest.mark.parametrize("channels", [1, 3])
def test_an_empty_piece_stays_empty(name: str, channels: int) -> None:
    """A process gets no sample of a batch that is smaller than the number of processes."""
    augmentation = AUGMENTATIONS.example(name)
    found = augmentation(pictures(0, channels, 8, 10), augmentation.draws(9, seed=1, epoch=2)[:0])
    assert found.shape == (0, channels, 8, 10)
    assert found.dtype == torch.float32
