"""A training step of lipcert against plain cross-entropy, 4C3F and 8C2F, batch 128.

`plain` is what anyone would write: the same network, fused Adam, images already floats. `engine` is our loop
with cross-entropy. Images are noise: the time does not depend on them.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from timing import interleaved, print_ratios

from lipcert.data import Dataset
from lipcert.data.augmentation import Augmentation
from lipcert.losses import CLL, CrossEntropy, GloRo, Loss
from lipcert.models import create
from lipcert.train import Hardware, Plan, RunDirectory
from lipcert.train.loop import _Training
from lipcert.train.optimizers import adam

BATCH = 128
SHAPES = {"4c3f": ((3, 32, 32), 10), "8c2f": ((3, 64, 64), 200)}


def plain_step(name: str) -> Callable[[], None]:
    """Forward, cross-entropy, backward, Adam."""
    shape, classes = SHAPES[name]
    model = create(name, num_classes=classes, input_shape=shape)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    x, y = torch.rand(BATCH, *shape), torch.randint(classes, (BATCH,))

    def step() -> None:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def lipcert_step(name: str, loss: Loss, augment: bool = False) -> Callable[[], None]:
    """A step of the loop, everything included but the end of an epoch."""
    shape, classes = SHAPES[name]
    samples = 4 * BATCH
    data = Dataset(
        torch.randint(0, 256, (samples, *shape), dtype=torch.uint8),
        torch.arange(samples) % classes,
        tuple(map(str, range(classes))),
    )
    plan = Plan(
        model=create(name, num_classes=classes, input_shape=shape),
        loss=loss,
        optimizer=lambda parameters: adam(parameters, lr=1e-3),
        train=data,
        epochs=1000,
        batch_size=BATCH,
        seed=0,
        augmentation=Augmentation(crop=4, flip=True, rotate=2.0, jitter=0.25) if augment else None,
    )
    return _Training(plan, RunDirectory(Path(tempfile.mkdtemp())), Hardware("cpu").launch())._advance


def main() -> None:
    torch.set_num_threads(2)
    cll = CLL(eps=0.15, slack=0.15, lam=1e-4)
    for name in sys.argv[1:] or SHAPES:
        print(f"{name}, batch {BATCH}")
        works = {
            "plain": plain_step(name),
            "engine, cross-entropy": lipcert_step(name, CrossEntropy()),
            "engine, CLL": lipcert_step(name, cll),
            "engine, CLL, augmented": lipcert_step(name, cll, augment=True),
            "engine, GloRo": lipcert_step(name, GloRo(eps=0.15)),
        }
        print_ratios(interleaved(works, rounds=15 if name == "4c3f" else 7), "plain")


if __name__ == "__main__":
    main()
