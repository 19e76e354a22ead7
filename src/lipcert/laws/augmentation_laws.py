"""The laws of every augmentation."""

from __future__ import annotations

import torch
from torch import Tensor

from lipcert.data.augmentations import AUGMENTATIONS
from lipcert.data.augmentations.base import Augmentation
from lipcert.laws.law import described, expect, expect_close, laws_of_registry

AUGMENTATION_LAWS = laws_of_registry("augmentations", AUGMENTATIONS, AUGMENTATIONS.example)

_SHAPES = ((16, 3, 12, 12), (5, 1, 8, 10), (1, 4, 7, 7), (0, 3, 8, 8), (0, 1, 8, 8))


def pictures(*shape: int) -> Tensor:
    """Draw images."""
    return torch.randint(0, 256, shape, dtype=torch.uint8)


@AUGMENTATION_LAWS.add()
def images_stay_images(augmentation: Augmentation) -> None:
    """Check shape and range, and that the images that were given are not written to."""
    for shape in _SHAPES:
        x = pictures(*shape)
        before = x.clone()
        found = augmentation(x, augmentation.draws(len(x), seed=1, epoch=2))
        right = found.shape == x.shape and found.dtype == torch.float32
        expect(right, f"expected torch.float32 of shape {shape}, found {described(found)}")
        inside = ((found >= 0) & (found <= 1)).all()
        expect(inside, f"images {shape}: expected pixels between 0 and 1, found others")
        expect(torch.equal(x, before), f"images {shape}: the images that were given are changed")


@AUGMENTATION_LAWS.add()
def draws_are_a_function_of_seed_and_epoch(augmentation: Augmentation) -> None:
    """Draw twice, as a training does that goes on later."""
    draws = augmentation.draws(9, seed=1, epoch=2)
    right = draws.shape == (9, augmentation.chances) and draws.dtype == torch.float32
    expect(right, f"draws: expected torch.float32 of shape (9, chances), found {described(draws)}")
    expect(((draws >= 0) & (draws < 1)).all(), "draws: expected numbers in [0, 1), found others")
    expect(torch.equal(draws, augmentation.draws(9, seed=1, epoch=2)), "draws of a seed and epoch change")
    for seed, epoch in ((2, 2), (1, 3)):
        other = not torch.equal(draws, augmentation.draws(9, seed=seed, epoch=epoch))
        expect(other, "draws are the same for another seed or epoch")


@AUGMENTATION_LAWS.add()
def a_sample_depends_on_its_own_draws_alone(augmentation: Augmentation) -> None:
    """Compare it without its neighbours, and with the global random state; images do change."""
    x, draws = pictures(8, 3, 12, 12), augmentation.draws(8, seed=0, epoch=0)
    state = torch.get_rng_state()
    whole = augmentation(x, draws)
    untouched = torch.equal(torch.get_rng_state(), state)
    expect(untouched, "it draws random numbers of its own; use only those in `draws`")
    alone = torch.cat([augmentation(x[i : i + 1], draws[i : i + 1]) for i in range(8)])
    expect_close(alone, whole, "an image changes with the other images of the batch")
    expect(torch.equal(augmentation(x, draws), whole), "the same draws give other images")
    expect(not torch.equal(whole, x.float() / 255), "it changes no image")
