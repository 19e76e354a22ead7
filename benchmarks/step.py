"""A training step of lipcert against plain cross-entropy, 4C3F and 8C2F, batch 128; and the end of an epoch.

`plain` is what anyone would write: the same network, fused Adam, images already floats. `engine` is our loop
with cross-entropy. Images are noise: the time does not depend on them. Writes results/step.json.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from timing import Timing, interleaved, print_ratios

from lipcert.data import Dataset
from lipcert.data.augmentation import Augmentation
from lipcert.losses import CLL, CrossEntropy, GloRo, Loss
from lipcert.models import create
from lipcert.train import Hardware, Plan, RunDirectory
from lipcert.train.loop import _Training
from lipcert.train.optimizers import adam
from results import write_table

BATCH = 128
# Input, classes, validation images, steps of an epoch: CIFAR-10 and Tiny-ImageNet with 5 % held out.
SHAPES = {"4c3f": ((3, 32, 32), 10, 2500, 372), "8c2f": ((3, 64, 64), 200, 5000, 743)}


def plain_step(name: str) -> Callable[[], None]:
    """Forward, cross-entropy, backward, Adam."""
    shape, classes, *_ = SHAPES[name]
    model = create(name, num_classes=classes, input_shape=shape)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    x, y = torch.rand(BATCH, *shape), torch.randint(classes, (BATCH,))

    def step() -> None:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def images(name: str, samples: int) -> Dataset:
    """Noise, and a label of every class."""
    shape, classes, *_ = SHAPES[name]
    pixels = torch.randint(0, 256, (samples, *shape), dtype=torch.uint8)
    return Dataset(pixels, torch.arange(samples) % classes, tuple(map(str, range(classes))))


def training(name: str, loss: Loss, augment: bool = False) -> _Training:
    """Our loop, ready to go."""
    shape, classes, validation, _ = SHAPES[name]
    plan = Plan(
        model=create(name, num_classes=classes, input_shape=shape),
        loss=loss,
        optimizer=lambda parameters: adam(parameters, lr=1e-3),
        train=images(name, 4 * BATCH),
        val=images(name, validation),
        validate_every=1,
        epochs=1000,
        batch_size=BATCH,
        iterations=3,  # as the recipes have it
        seed=0,
        augmentation=Augmentation(crop=4, flip=True, rotate=2.0, jitter=0.25) if augment else None,
    )
    return _Training(plan, RunDirectory(Path(tempfile.mkdtemp())), Hardware("cpu").launch())


def epoch_end(it: _Training) -> float:
    """Seconds for metrics, converged constants, validation and checkpoint, the best of three."""
    it.run.checkpoint.parent.mkdir(exist_ok=True)
    found = []
    for _ in range(3):
        it._advance()  # vectors that lag as they do in training
        start = time.perf_counter()
        it._metrics(1, it.losses)
        it._save()
        found.append(time.perf_counter() - start)
    return min(found)


def measure(name: str) -> list[list[str]]:
    cll = training(name, CLL(eps=0.15, slack=0.15, lam=1e-4))
    works = {
        "plain": plain_step(name),
        "engine, cross-entropy": training(name, CrossEntropy())._advance,
        "engine, CLL": cll._advance,
        "engine, CLL, augmented": training(name, cll.plan.loss, augment=True)._advance,
        "engine, GloRo": training(name, GloRo(eps=0.15))._advance,
    }
    timings: dict[str, Timing] = interleaved(works, rounds=60 if name == "4c3f" else 5)
    ratios = print_ratios(timings, "plain")
    epoch = SHAPES[name][3] * timings["engine, CLL"].median
    share = epoch_end(cll) / epoch
    print(f"the end of an epoch: {100 * share:.1f} % of it")
    rows = [[name, work, f"{ratio:.3f}"] for work, ratio in ratios.items()]
    return [*rows, [name, "end of an epoch / epoch, CLL", f"{share:.3f}"]]


def main() -> None:
    torch.set_num_threads(2)
    table = [row for name in sys.argv[1:] or SHAPES for row in measure(name)]
    note = f"ratios to plain training, batch {BATCH}, two threads, interleaved medians"
    write_table("step", note, ["model", "work", "ratio"], table)


if __name__ == "__main__":
    main()
