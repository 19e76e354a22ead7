"""Two moons with a known margin: scikit-learn's arcs, and uniform noise within a disc.

The arcs are 0.5 apart; noise of radius 0.1 on each side leaves a true margin of exactly 0.3.
"""

from __future__ import annotations

from typing import get_args

import numpy as np
import torch

from lipcert.data.base import DATASETS, Dataset, Split
from lipcert.errors import InputError

# More points than any network needs, and fewer than fill a memory.
_MOST = 100_000_000


@DATASETS.register("moons", example={"train": 20, "val": 30, "test": 10})
def moons(
    split: Split = "train",
    *,
    train: int = 2000,
    val: int = 20_000,
    test: int = 20_000,
    noise: float = 0.1,
    seed: int = 0,
) -> Dataset:
    """Draw two interleaved arcs in the plane; their true margin is 0.3 with the default noise.

    `train`, `val` and `test` are the numbers of points.
    """
    from sklearn.datasets import make_moons  # takes a second to import

    count = {"train": train, "val": val, "test": test}[split]
    if not 2 <= count <= _MOST:
        bound = "at least 2" if count < 2 else f"at most {_MOST:,}"
        raise InputError(f"{split}: expected {bound} points, got {count}")
    if not 0 <= noise < np.inf:
        raise InputError(f"noise: expected a radius >= 0, got {noise}")
    arcs, labels = make_moons(count, shuffle=False)
    generator = np.random.default_rng([seed, get_args(Split).index(split)])
    # The square root makes the density uniform over the disc.
    radius = noise * np.sqrt(generator.random(count))
    angle = 2 * np.pi * generator.random(count)
    points = arcs + radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return Dataset(
        torch.from_numpy(points).float(), torch.from_numpy(labels).long(), classes=("upper", "lower")
    )
