"""Augmented images: each change alone is what it says, and depends on seed, epoch and index only."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image, ImageEnhance
from torch import Tensor

from lipcert import InputError
from lipcert.data.augmentations.standard import Standard


def pictures(batch: int = 16, side: int = 12, channels: int = 3) -> Tensor:
    return torch.randint(0, 256, (batch, channels, side, side), dtype=torch.uint8)


def chances(batch: int = 16, **fixed: float) -> Tensor:
    """Draws in the middle, where nothing happens, but for those given by position."""
    draws = torch.full((batch, 7), 0.5)
    for key, value in fixed.items():
        draws[:, int(key.removeprefix("d"))] = value
    return draws


def test_nothing_asked_nothing_done() -> None:
    x = pictures()
    assert torch.equal(Standard()(x, torch.rand(16, 7)), x.float() / 255)


def test_a_crop_is_one_of_the_padded_image() -> None:
    x = pictures()
    draws = torch.rand(16, 7)
    found = Standard(crop=4)(x, draws)
    padded = F.pad(x.float() / 255, (4, 4, 4, 4))
    for image, whole, draw in zip(found, padded, draws, strict=True):
        top, left = (int(v * 9) for v in draw[:2])
        assert torch.equal(image, whole[:, top : top + 12, left : left + 12])


def test_a_reflected_crop_is_one_of_the_mirrored_image() -> None:
    x = pictures()
    draws = torch.rand(16, 7)
    found = Standard(crop=4, padding="reflect")(x, draws)
    padded = F.pad(x.float() / 255, (4, 4, 4, 4), mode="reflect")
    for image, whole, draw in zip(found, padded, draws, strict=True):
        top, left = (int(v * 9) for v in draw[:2])
        assert torch.equal(image, whole[:, top : top + 12, left : left + 12])


def test_mirrored_pixels_reach_any_distance() -> None:
    row = torch.tensor([10, 20, 30], dtype=torch.uint8).view(1, 1, 1, 3)
    found = Standard(crop=7, padding="reflect")(row, chances(1, d1=0.99))  # seven to the right, none down
    assert (found * 255).round().flatten().tolist() == [20, 10, 20]
    turned = Standard(rotate=45, padding="reflect")(pictures().clamp_min(1), chances(d2=1.0))
    assert turned.min() > 0


def test_every_shift_is_as_likely() -> None:
    draws = Standard(crop=4).draws(90_000, seed=0, epoch=0)
    counts = (draws[:, 0] * 9).floor().long().bincount(minlength=9)
    assert counts.min() > 9_600
    assert counts.max() < 10_400


def test_half_of_the_images_are_mirrored() -> None:
    x = pictures(1000, 4)
    draws = torch.rand(1000, 7)
    found = Standard(flip=True)(x, draws)
    mirrored = draws[:, 3] < 0.5
    expected = torch.where(mirrored[:, None, None, None], x.flip(3), x).float() / 255
    assert torch.equal(found, expected)
    assert 400 < int(mirrored.sum()) < 600


@pytest.mark.parametrize(("draw", "turns"), [(1.0, 1), (0.0, -1)])
def test_a_quarter_turn(draw: float, turns: int) -> None:
    x = pictures()
    found = Standard(rotate=90)(x, chances(d2=draw))
    assert torch.equal(found, torch.rot90(x, turns, dims=(2, 3)).float() / 255)


def test_a_small_rotation_is_that_of_pillow() -> None:
    x = pictures(1, 32)
    found = Standard(rotate=2)(x, chances(1, d2=1.0))[0]
    image = Image.fromarray(x[0].permute(1, 2, 0).numpy())
    expected = torch.from_numpy(np.array(image.rotate(2))).permute(2, 0, 1).float() / 255
    assert (found == expected).float().mean() > 0.99  # a pixel between two places may go to either


@pytest.mark.parametrize(
    ("position", "enhance"),
    [(4, ImageEnhance.Brightness), (5, ImageEnhance.Contrast), (6, ImageEnhance.Color)],
)
@pytest.mark.parametrize("draw", [0.0, 0.3, 0.999])
def test_colours_change_as_in_pillow(position: int, enhance: type, draw: float) -> None:
    x = pictures(1, 16)
    found = Standard(jitter=0.25)(x, chances(1, **{f"d{position}": draw}))[0]
    factor = 1 + 0.25 * (2 * draw - 1)
    image = enhance(Image.fromarray(x[0].permute(1, 2, 0).numpy())).enhance(factor)
    expected = torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255
    assert (found - expected).abs().max() < 2.1 / 255  # Pillow works with bytes


@pytest.mark.parametrize(("name", "position"), [("brightness", 4), ("contrast", 5), ("saturation", 6)])
def test_a_range_is_between_its_two_factors(name: str, position: int) -> None:
    x, middle = pictures(1, 16), chances(1)
    for draw in (0.0, 0.25, 0.999):
        draws = chances(1, **{f"d{position}": draw})
        factor = 0.5 + 1.5 * draw
        ranged = Standard(**{name: (0.5, 2.0)})(x, draws)  # type: ignore[arg-type]
        exactly = Standard(**{name: (factor, factor)})(x, middle)  # type: ignore[arg-type]
        torch.testing.assert_close(ranged, exactly)
        alone = Standard(**{name: 0.25})(x, draws)  # type: ignore[arg-type]
        others = {key: 0.0 for key in ("brightness", "contrast", "saturation") if key != name}
        assert torch.equal(alone, Standard(jitter=0.25, **others)(x, draws))  # type: ignore[arg-type]
    assert not torch.equal(ranged, x.float() / 255)


def test_factors_reach_both_ends() -> None:
    x = torch.full((4000, 1, 1, 1), 100, dtype=torch.uint8)
    some = Standard(brightness=(0.5, 2.0))
    found = some(x, some.draws(4000, seed=0, epoch=0)) * 255 / 100
    assert 0.5 <= float(found.min()) < 0.51
    assert 1.99 < float(found.max()) <= 2.0
    assert abs(float(found.mean()) - 1.25) < 0.03


@pytest.mark.parametrize(("draw", "shift"), [(0.0, -0.3), (0.999, 0.3 * 0.998), (0.7, 0.3 * 0.4), (0.5, 0.0)])
def test_hue_is_that_of_colorsys(draw: float, shift: float) -> None:
    x = pictures(1, 24)
    x[..., 0] = x[:, :1, :, 0]  # grey pixels, which have no hue
    x[..., 1] = torch.tensor([[255], [255], [3]])  # two largest channels
    found = Standard(hue=0.3)(x, torch.cat([chances(1), torch.full((1, 1), draw)], dim=1))
    expected = torch.tensor(
        [
            colorsys.hsv_to_rgb((h + shift) % 1, s, v)
            for h, s, v in (
                colorsys.rgb_to_hsv(*pixel) for pixel in (x[0].flatten(1).T.double() / 255).tolist()
            )
        ]
    )
    torch.testing.assert_close(found[0].flatten(1).T, expected, atol=2e-6, rtol=0)


def test_hue_leaves_grey_images_and_draws_one_number_more() -> None:
    some = Standard(hue=0.5)
    assert some.draws(3, seed=0, epoch=0).shape == (3, 8)
    for channels in (1, 4):
        x = pictures(channels=channels)
        assert torch.equal(some(x, torch.rand(16, 8)), x.float() / 255)


def test_a_jitter_alone_is_that_of_published_runs() -> None:
    some = Standard(crop=2, flip=True, rotate=5.0, jitter=0.25)
    draws = some.draws(4, seed=1, epoch=2)
    assert draws[0, 4:].tolist() == [0.08793783187866211, 0.4199991226196289, 0.12449008226394653]
    x = (torch.arange(4 * 3 * 36) * 37 % 256).to(torch.uint8).view(4, 3, 6, 6)
    assert float(some(x, draws).double().sum()) == pytest.approx(137.2228381, abs=1e-5)


def test_draws_depend_on_seed_epoch_and_index_alone() -> None:
    some = Standard(4, True, 2.0, 0.25)
    first = some.draws(100, seed=1, epoch=3)
    assert torch.equal(first, some.draws(100, seed=1, epoch=3))
    assert not torch.equal(first, some.draws(100, seed=2, epoch=3))
    assert not torch.equal(first, some.draws(100, seed=1, epoch=4))
    x = pictures(100)
    whole = some(x, first)
    part = torch.tensor([7, 3, 99])
    assert torch.equal(some(x[part], first[part]), whole[part])


def test_results_are_images() -> None:
    for shape in ((5, 1, 7, 9), (5, 3, 9, 7)):
        x = torch.randint(0, 256, shape, dtype=torch.uint8)
        found = Standard(3, True, 30.0, 0.9)(x, torch.rand(5, 7))
        assert found.shape == x.shape
        assert float(found.min()) >= 0
        assert float(found.max()) <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"crop": -1}, "crop"),
        ({"rotate": 200}, "rotate"),
        ({"jitter": 1.0}, "jitter"),
        ({"padding": "wrap"}, "padding: expected zeros or reflect"),
        ({"brightness": -0.1}, "brightness: expected a number"),
        ({"contrast": (2.0, 0.5)}, "contrast: expected factors"),
        ({"saturation": (-1.0, 0.5)}, "saturation: expected factors"),
        ({"hue": 0.6}, "hue: expected a part of the colour circle"),
    ],
)
def test_wrong_numbers_are_named(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Standard(**arguments)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="uint8 images"):
        Standard(crop=1)(torch.zeros(2, 3), torch.zeros(2, 7))
