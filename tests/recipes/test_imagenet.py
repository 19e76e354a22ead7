"""The recipes for ImageNet on a generated folder in its layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lipcert.data.sizes import size_of
from lipcert.models import create
from lipcert.recipes import execute, read_recipe

RECIPES = {
    "imagenet-liresnet": 224,
    "imagenet-liresnet-64": 64,
    "imagenet-lipnext": 224,
    "imagenet-lipnext-64": 64,
}


@pytest.fixture(scope="module")
def imagenet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes: eight training images each and four for validation, photographs of several sizes."""
    root, generator = tmp_path_factory.mktemp("imagenet"), np.random.default_rng(0)
    for split, count in (("train", 8), ("val", 4)):
        for wnid in ("n01440764", "n01443537"):
            (root / split / wnid).mkdir(parents=True)
            for i in range(count):
                pixels = generator.integers(0, 256, (60 + 10 * i, 90, 3), dtype=np.uint8)
                image = Image.fromarray(pixels if i else pixels[..., 0])  # one of them is grey
                image.save(root / split / wnid / f"{i}.JPEG")
    return root


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if RECIPES[name] > 64 else ()) for name in RECIPES]
)
def test_a_folder_in_the_layout_of_imagenet_is_trained_and_certified(
    name: str, imagenet: Path, tmp_path: Path
) -> None:
    recipe = read_recipe(name, "smoke", [f"data.root={imagenet}"])
    assert size_of("folder", "train", **recipe.arguments.data).samples == 16
    run = execute(recipe, tmp_path / "run")
    statement = run.statement()
    assert statement.splits["val"].samples == 8
    assert statement.model.input_shape == [3, RECIPES[name], RECIPES[name]]
    assert len((run.path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()) == 1


@pytest.mark.parametrize("name", RECIPES)
def test_the_full_network_fits_a_device(name: str) -> None:
    """At 224 pixels a stem of stride 2 would need a dense layer of 800 million weights."""
    recipe = read_recipe(name)
    side = RECIPES[name]
    with torch.device("meta"):
        model = create(
            recipe.model.name, num_classes=1000, input_shape=(3, side, side), **recipe.arguments.model
        )
    assert 2e7 < sum(p.numel() for p in model.parameters()) < 2e8
