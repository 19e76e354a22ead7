"""How step time and peak memory grow with classes, image side, depth, batch and width.

CLL in our engine beside the same loop with cross-entropy, each measurement in a process of its own; an
exponent is the slope of log time (memory) against log size over the upper half of the sizes. Writes
results/growth.json.
"""

from __future__ import annotations

import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import torch
from torch import nn

from lipcert.data import Dataset
from lipcert.losses import CLL, CrossEntropy
from lipcert.nn import MinMax
from lipcert.train import Hardware, Plan, RunDirectory
from lipcert.train.optimizers import adam
from lipcert.train.single import Single
from lipcert.train.training import Training
from results import write_table

BASE = {"classes": 10, "side": 32, "depth": 3, "batch": 32, "width": 16}
AXES = {
    "classes": [2, 100, 1000, 5000, 20000],
    "side": [32, 64, 128, 224],
    "depth": [2, 8, 32],
    "batch": [16, 64, 256],
    "width": [16, 32, 64, 128],
}
ROUNDS = 5


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
    return Single(Training(plan, RunDirectory(tempfile.mkdtemp()), Hardware("cpu").launch()))


def worker(loss: str, text: str) -> None:
    """One process: seconds of a step, and the most memory it ever had."""
    torch.set_num_threads(2)
    steps = training(loss, json.loads(text))
    found = []
    for _ in range(3 + ROUNDS * 3):
        start = time.perf_counter()
        steps.advance()
        found.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": statistics.median(found[3:]), "kilobytes": peak}))


def measure(loss: str, size: dict[str, int]) -> dict[str, float]:
    command = [sys.executable, __file__, "worker", loss, json.dumps(size)]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found


def exponent(sizes: list[int], values: list[float]) -> float:
    """The slope over the upper half, where what does not grow no longer counts."""
    half = len(sizes) // 2
    x, y = ([math.log(v) for v in column[half:]] for column in (sizes, values))
    return (y[-1] - y[0]) / (x[-1] - x[0])


def axis(name: str, sizes: list[int]) -> list[list[str]]:
    rows, found = [], {"plain": [], "cll": []}  # type: ignore[var-annotated]
    for value in sizes:
        size: dict[str, Any] = {**BASE, name: value}
        for loss, seen in found.items():
            seen.append(measure(loss, size))
        plain, cll = found["plain"][-1], found["cll"][-1]
        time_, memory = (cll[key] / plain[key] for key in ("seconds", "kilobytes"))
        rows.append([name, str(value), f"{time_:.2f}", f"{memory:.2f}", "", ""])
        print(*rows[-1][:4], sep="  ", flush=True)
    cells = [
        " / ".join(f"{exponent(sizes, [f[key] for f in found[loss]]):.2f}" for loss in ("cll", "plain"))
        for key in ("seconds", "kilobytes")
    ]
    rows[-1][4:] = cells
    print(name, *cells, sep="  ")
    return rows


def main() -> None:
    table = [row for name, sizes in AXES.items() for row in axis(name, sizes)]
    titles = ["axis", "size", "time / plain", "memory / plain"]
    titles += ["exponent of time, CLL / plain", "of memory"]
    note = f"CLL against cross-entropy in our engine; the rest is {BASE}; two threads, medians"
    write_table("growth", note, titles, table)


if __name__ == "__main__":
    worker(*sys.argv[2:]) if sys.argv[1:2] == ["worker"] else main()
