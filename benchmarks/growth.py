"""How step time and peak memory grow with classes, image side, depth, batch and width.

CLL in our engine and the same loop with cross-entropy take turns, each in a process of its own; an
exponent is the slope of log time (memory) against log size over the upper half of the sizes. Writes
results/growth.json.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from timing import Timing, in_turns, serve
from torch import nn

from lipcert.commands.support.allocator import keep_freed_memory
from lipcert.data import Dataset
from lipcert.losses import CLL, CrossEntropy
from lipcert.nn import MinMax
from lipcert.runs import Run
from lipcert.train import Hardware, Plan
from lipcert.train.optimizers.adam import adam
from lipcert.train.state import Training
from lipcert.train.step import Single
from results import write_table

BASE = {"classes": 10, "side": 32, "depth": 3, "batch": 32, "width": 16}
AXES = {
    "classes": [2, 100, 1000, 5000, 20000],
    "side": [32, 64, 128, 224],
    "depth": [2, 8, 32],
    "batch": [16, 64, 256],
    "width": [16, 32, 64, 128],
}
LOSSES = ("cll", "plain")
ROUNDS = 15


def network(classes: int, side: int, depth: int, width: int) -> nn.Sequential:
    """Convolutions of one width, halved in size by the last, and a dense layer before the head."""
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, padding=1), MinMax()]
    for _ in range(depth - 2):
        layers += [nn.Conv2d(width, width, 3, padding=1), MinMax()]
    layers += [nn.Conv2d(width, width, 4, stride=4), MinMax()]
    # Averaged to 4x4 whatever the side, so that this alone grows with it.
    layers += [nn.AvgPool2d(side // 16), nn.Flatten(), nn.Linear(16 * width, 256), MinMax()]
    return nn.Sequential(*layers, nn.Linear(256, classes))


def training(loss: str, size: dict[str, int]) -> Single:
    samples = 2 * size["batch"]
    pixels = torch.randint(0, 256, (samples, 3, size["side"], size["side"]), dtype=torch.uint8)
    classes = size["classes"]
    data = Dataset(pixels, torch.arange(samples) % classes, tuple(map(str, range(classes))))
    plan = Plan(
        model=network(classes, size["side"], size["depth"], size["width"]),
        loss=CLL(eps=0.15, slack=0.15, lam=1e-4) if loss == "cll" else CrossEntropy(),
        optimizer=lambda parameters: adam(parameters, lr=1e-4),
        train=data,
        epochs=1000,
        batch_size=size["batch"],
        iterations=5,
        turns=3,
        seed=0,
    )
    keep_freed_memory()  # as the command line does
    return Single(Training(plan, Run(tempfile.mkdtemp()), Hardware("cpu").launch()))


def worker(loss: str, text: str, peaks: str) -> None:
    """One process: steps when asked for, and in the end the most memory it ever had, in a file."""
    torch.set_num_threads(2)
    serve(training(loss, json.loads(text)).advance)
    Path(peaks).write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss), encoding="utf-8")


def measure(size: dict[str, int]) -> tuple[dict[str, Timing], dict[str, float]]:
    """Return seconds per step and kilobytes."""
    folder = Path(tempfile.mkdtemp())
    works = {loss: ["worker", loss, json.dumps(size), str(folder / loss)] for loss in LOSSES}
    timings = in_turns(works, ROUNDS, warm=3)
    return timings, {loss: float((folder / loss).read_text(encoding="utf-8")) for loss in LOSSES}


def exponent(sizes: list[int], values: list[float]) -> float:
    """The slope over the upper half, where what does not grow no longer counts."""
    half = len(sizes) // 2
    x, y = ([math.log(v) for v in column[half:]] for column in (sizes, values))
    return (y[-1] - y[0]) / (x[-1] - x[0])


def axis(name: str, sizes: list[int]) -> list[list[str]]:
    rows: list[list[str]] = []
    seconds: dict[str, list[float]] = {loss: [] for loss in LOSSES}
    kilobytes: dict[str, list[float]] = {loss: [] for loss in LOSSES}
    for value in sizes:
        size: dict[str, Any] = {**BASE, name: value}
        timings, memory = measure(size)
        for loss in LOSSES:
            seconds[loss].append(timings[loss].median)
            kilobytes[loss].append(memory[loss])
        ratio = timings["cll"].ratio(timings["plain"])
        rows.append([name, str(value), str(ratio), f"{memory['cll'] / memory['plain']:.2f}", "", ""])
        print(*rows[-1][:4], sep="  ", flush=True)
    rows[-1][4:] = [
        " / ".join(f"{exponent(sizes, found[loss]):.2f}" for loss in LOSSES) for found in (seconds, kilobytes)
    ]
    print(name, *rows[-1][4:], sep="  ")
    return rows


def main() -> None:
    table = [row for name, sizes in AXES.items() for row in axis(name, sizes)]
    titles = ["axis", "size", "time / plain", "memory / plain"]
    titles += ["exponent of time, CLL / plain", "of memory"]
    turns = "two threads, interleaved, medians and quartiles"
    note = f"CLL against cross-entropy in our engine; the rest is {BASE}; {turns}"
    write_table("growth", note, titles, table)


if __name__ == "__main__":
    worker(*sys.argv[2:]) if sys.argv[1:2] == ["worker"] else main()
