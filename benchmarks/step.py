"""A training step of lipcert on images, batch 128, against plain training; and the end of an epoch.

`plain` is the obvious eager loop of obvious.py with fused Adam, in a process of its own; `engine` is our loop
with cross-entropy. Images are noise: the time does not depend on them. Writes results/step-MODEL.json.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable

import obvious
import torch
from timing import Timing, in_turns, print_ratios, serve

from lipcert.commands.support.allocator import keep_freed_memory
from lipcert.data import Dataset
from lipcert.data.augmentations.standard import Standard
from lipcert.losses import CLL, CrossEntropy, GloRo
from lipcert.models import create
from lipcert.runs import Run
from lipcert.train import Hardware, Plan
from lipcert.train.optimizers import MakeOptimizer
from lipcert.train.optimizers.adam import adam
from lipcert.train.state import Training
from lipcert.train.step import Single
from results import write_table

BATCH = 128
# Input, classes, validation images, steps of an epoch: CIFAR-10 and Tiny-ImageNet with 5 % held out.
CIFAR = ((3, 32, 32), 10, 2500, 372)
SHAPES = {"4c3f": CIFAR, "6c2f": CIFAR, "8c2f": ((3, 64, 64), 200, 5000, 743)}
ROUNDS = {"4c3f": 60, "6c2f": 60, "8c2f": 11}
WORKS = {
    "plain": None,
    "engine, cross-entropy": CrossEntropy(),
    "engine, CLL": CLL(eps=0.15, slack=0.15, lam=1e-4),
    "engine, CLL, augmented": CLL(eps=0.15, slack=0.15, lam=1e-4),
    "engine, GloRo": GloRo(eps=0.15),
}


def plain_step() -> Callable[[], None]:
    """Images already floats; the same optimiser."""
    model = obvious.c4f3()
    x, y = torch.rand(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))
    return obvious.training_step(
        model, lambda: (x, y), torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    )


def images(name: str, samples: int) -> Dataset:
    """Noise, and a label of every class."""
    shape, classes, *_ = SHAPES[name]
    pixels = torch.randint(0, 256, (samples, *shape), dtype=torch.uint8)
    return Dataset(pixels, torch.arange(samples) % classes, tuple(map(str, range(classes))))


def ready(name: str, work: str, optimizer: MakeOptimizer = adam, turns: int = 3) -> Training:
    """Return a training of our loop, in a process set up as the command line's is."""
    keep_freed_memory()
    shape, classes, validation, _ = SHAPES[name]
    loss = WORKS[work]
    assert loss is not None
    augment = Standard(crop=4, flip=True, rotate=2.0, jitter=0.25) if work.endswith("augmented") else None
    plan = Plan(
        model=create(name, num_classes=classes, input_shape=shape),
        loss=loss,
        optimizer=optimizer,
        train=images(name, 4 * BATCH),
        val=images(name, validation),
        validate_every=1,
        epochs=1000,
        batch_size=BATCH,
        iterations=5,
        turns=turns,
        seed=0,
        augmentation=augment,
    )
    return Training(plan, Run(tempfile.mkdtemp()), Hardware("cpu").launch())


def training(name: str, work: str, optimizer: MakeOptimizer = adam, turns: int = 3) -> Single:
    """Its steps; the layers take turns with their constants."""
    return Single(ready(name, work, optimizer, turns))


def epoch_end(steps: Single) -> float:
    """Seconds for metrics, converged constants, validation and checkpoint, the best of three."""
    it = steps.training
    it.run.checkpoint.parent.mkdir(exist_ok=True)
    found = []
    while len(found) < 3:
        steps.advance()  # vectors that lag as they do in training
        if it.step % it.plan.steps_per_epoch == 0:
            start = time.perf_counter()
            it.finish_epoch(steps.sums())
            it.save()
            found.append(time.perf_counter() - start)
    return min(found)


def measure(name: str) -> list[list[str]]:
    works = [work for work in WORKS if work != "plain" or name == "4c3f"]
    timings: dict[str, Timing] = in_turns({work: ["worker", name, work] for work in works}, ROUNDS[name])
    base = works[0]
    ratios = print_ratios(timings, base)
    to_engine = timings["engine, CLL"].ratio(timings["engine, cross-entropy"])
    augmentation = timings["engine, CLL, augmented"].ratio(timings["engine, CLL"]) - 1
    share = epoch_end(training(name, "engine, CLL")) / (SHAPES[name][3] * timings["engine, CLL"].median)
    print(f"CLL / engine {to_engine}, augmentation {augmentation}, end of an epoch {share:.3f}")
    rows = [[name, work, base, str(ratio)] for work, ratio in ratios.items() if work != base]
    rows += [[name, "engine, CLL", "engine, cross-entropy", str(to_engine)]] if base == "plain" else []
    rows += [[name, "augmentation", "engine, CLL", str(augmentation)]]
    return [*rows, [name, "end of an epoch", "an epoch's steps, CLL", f"{share:.3f}"]]


def main() -> None:
    torch.set_num_threads(2)
    if sys.argv[1:2] == ["worker"]:
        name, work = sys.argv[2:]
        serve(plain_step() if work == "plain" else training(name, work).advance)
        return
    note = f"batch {BATCH}, two threads, a process each, interleaved, medians and quartiles"
    for name in sys.argv[1:] or SHAPES:
        write_table(f"step-{name}", note, ["model", "work", "to", "ratio"], measure(name))


if __name__ == "__main__":
    main()
