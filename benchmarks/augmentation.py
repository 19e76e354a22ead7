"""Augmentation of a batch of CIFAR-10's size: ours beside kornia's, one and two threads.

Needs `pip install kornia`, which lipcert itself does not use. Both crop with 4 pixels of zeros, flip, turn by
2 degrees and change brightness, contrast and saturation by 25 %, with other draws for every image. Ours moves
bytes in one look-up; kornia takes floats and resamples once per operation. Images are noise: the time does
not depend on them. Writes results/augmentation.json.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from kornia import augmentation as kornia
from timing import interleaved

from lipcert.data.augmentations.standard import Standard
from results import write_table

BATCH, ROUNDS = 128, 40
IMAGES = torch.randint(0, 256, (BATCH, 3, 32, 32), dtype=torch.uint8)

MOVES = ("crop and flip", {"crop": 4, "flip": True})
ALL = ("crop, flip, turn, colours", {"crop": 4, "flip": True, "rotate": 2.0, "jitter": 0.25})


def ours(arguments: dict[str, float | bool]) -> Callable[[], object]:
    augmentation = Standard(**arguments)  # type: ignore[arg-type]
    return lambda: augmentation.changed(IMAGES, torch.rand(BATCH, augmentation.chances))


def theirs(arguments: dict[str, float | bool]) -> Callable[[], object]:
    steps: list[torch.nn.Module] = [kornia.RandomCrop((32, 32), padding=4), kornia.RandomHorizontalFlip()]
    if "rotate" in arguments:
        steps.append(kornia.RandomRotation(2.0, resample="nearest", p=1.0))
        steps.append(kornia.ColorJitter(0.25, 0.25, 0.25, 0.0, p=1.0))
    augmentation = torch.nn.Sequential(*steps)
    return lambda: augmentation(IMAGES.float() / 255)


def measure(threads: int) -> list[list[str]]:
    torch.set_num_threads(threads)
    rows = []
    for name, arguments in (MOVES, ALL):
        timings = interleaved({"ours": ours(arguments), "kornia": theirs(arguments)}, ROUNDS)
        rows.append([name, str(threads), str(timings["kornia"].ratio(timings["ours"]))])
        print(*rows[-1], sep="  ")
    return rows


if __name__ == "__main__":
    note = f"batch {BATCH} of 3 × 32 × 32, interleaved in one process, medians and quartiles; kornia 0.9.0"
    write_table(
        "augmentation",
        note,
        ["augmentation", "threads", "kornia / ours"],
        [row for n in (1, 2) for row in measure(n)],
    )
