"""Where training images are: the choice, the bits, and the batch that is sent ahead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lipcert.data import Dataset
from lipcert.data.augmentations.standard import Standard
from lipcert.losses import CLL
from lipcert.recipes.schema import TrainSettings
from lipcert.runs import Run
from lipcert.train import Hardware, Plan
from lipcert.train.optimizers.adam import adam
from lipcert.train.placement import Ahead, lives_on
from lipcert.train.state import Training
from lipcert.train.step import Single

IMAGES = torch.arange(40 * 3 * 4 * 4, dtype=torch.int64).remainder(251).to(torch.uint8).view(40, 3, 4, 4)
GPU, CPU = torch.device("cuda", 0), torch.device("cpu")


@pytest.mark.parametrize(
    ("device", "wanted", "free", "expected"),
    [
        (GPU, "auto", 2 * IMAGES.nbytes, True),
        (GPU, "auto", 2 * IMAGES.nbytes - 1, False),
        (GPU, True, 0, True),
        (GPU, False, 10**12, False),
        (torch.device("mps"), "auto", None, False),
        (CPU, "auto", None, False),
    ],
    ids=str,
)
def test_images_live_on_a_device_where_they_fit(
    device: torch.device, wanted: Any, free: int | None, expected: bool
) -> None:
    assert lives_on(device, IMAGES, wanted, free) is expected


def test_a_recipe_says_auto_true_or_false() -> None:
    for value in ("auto", True, False):
        assert TrainSettings(epochs=1, batch_size=1, data_on_device=value).data_on_device == value
    assert "data_on_device" not in TrainSettings(epochs=1, batch_size=1).model_dump()
    with pytest.raises(ValueError, match="data_on_device"):
        TrainSettings(epochs=1, batch_size=1, data_on_device="often")  # type: ignore[arg-type]


class Counted(Ahead):
    """Notes what is loaded, and when."""

    def __init__(self, images: Tensor, device: torch.device) -> None:
        super().__init__(images, device)
        self.loaded: list[list[int]] = []

    def _load(self, piece: Tensor) -> Tensor:
        self.loaded.append(piece.tolist())
        return super()._load(piece)


def test_the_next_batch_is_loaded_before_it_is_taken_and_only_once() -> None:
    ahead = Counted(IMAGES, CPU)
    first, second, other = torch.tensor([3, 1]), torch.tensor([2]), torch.tensor([5, 6])
    ahead.send([first, second])
    assert ahead.loaded == [[3, 1], [2]]
    assert torch.equal(ahead.take(first), IMAGES[first])
    assert torch.equal(ahead.take(second), IMAGES[second])
    assert len(ahead.loaded) == 2
    ahead.send([first])
    assert torch.equal(ahead.take(other), IMAGES[other])  # another than was expected
    assert torch.equal(ahead.take(first), IMAGES[first])


def weights_after(path: Path, ahead: bool, **settings: Any) -> tuple[list[Tensor], list[list[int]]]:
    """The weights after one epoch and a step, and what was loaded."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 5))
    data = Dataset(IMAGES, torch.arange(40) % 5, tuple("01234"))
    loss, augmentation = CLL(eps=0.1, slack=0.1, lam=1e-3), Standard(crop=1, flip=True)
    plan = Plan(
        model, loss, adam, data, epochs=2, batch_size=16, seed=0, augmentation=augmentation, **settings
    )
    run = Run(path)
    run.checkpoint.parent.mkdir(parents=True)
    steps = Single(Training(plan, run, Hardware("cpu").launch()))
    counted = Counted(IMAGES, CPU)
    steps._ahead = counted if ahead else None
    for _ in range(4):
        steps.advance()
        if steps.training.step == 3:
            steps.end_epoch(0.0)
    return [p.detach() for p in model.parameters()], counted.loaded


@pytest.mark.parametrize("accumulate", [1, 2])
def test_batches_sent_ahead_change_no_bit(accumulate: int, tmp_path: Path) -> None:
    settings = {"accumulate": accumulate}
    here, _ = weights_after(tmp_path / "here", ahead=False, **settings)
    sent, loaded = weights_after(tmp_path / "sent", ahead=True, **settings)
    assert all(torch.equal(a, b) for a, b in zip(here, sent, strict=True))
    # Every image of the first epoch once, then the first two batches of the next one.
    assert len(loaded) == 5 * accumulate
    assert sorted(i for piece in loaded[: 3 * accumulate] for i in piece) == list(range(40))


@pytest.mark.parametrize("place", [True, False])
def test_the_place_changes_no_bit(place: bool, tmp_path: Path) -> None:
    auto, _ = weights_after(tmp_path / "auto", ahead=False)
    found, _ = weights_after(tmp_path / "found", ahead=False, data_on_device=place)
    assert all(torch.equal(a, b) for a, b in zip(auto, found, strict=True))
