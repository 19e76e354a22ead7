"""What a training step costs beside its products: calls, kernels and time of 4C3F's shape at tiny widths.

Kernels are calls of ATen's operators but for views, uninitialised tensors and profiler marks, counted by a
dispatch mode; what a kernel does by itself on a device is not seen. Time is that of the process, median of
interleaved rounds, against the obvious eager loop with cross-entropy that takes uint8 images. All have ReLUs.
Writes
results/overhead.json; with the argument `compiled` also compiled steps.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import obvious
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from lipcert.data import Dataset
from lipcert.losses import CLL, CrossEntropy
from lipcert.models import create
from lipcert.runs import Run
from lipcert.train import Hardware, Plan
from lipcert.train.optimizers.adam import adam
from lipcert.train.state import Training
from lipcert.train.step import Single
from results import write_table

BATCH, ROUNDS, STEPS, SHAPE = 16, 7, 6, (3, 32, 32)
FREE = {
    "view",
    "_unsafe_view",
    "t",
    "transpose",
    "permute",
    "unsqueeze",
    "squeeze",
    "expand",
    "slice",
    "select",
}
FREE |= {"detach", "alias", "split", "split_with_sizes", "unbind", "as_strided", "diagonal", "unfold"}
FREE |= {"lift_fresh", "empty", "empty_like", "empty_strided", "new_empty"}
LOSS = CLL(eps=0.15, slack=0.15, lam=1e-4)
WORKS: dict[str, dict[str, Any]] = {
    "cross-entropy": {"loss": CrossEntropy()},
    "CLL, krylov, turns 1": {"loss": LOSS},
    "CLL, krylov, turns 3": {"loss": LOSS, "turns": 3},
    "CLL, block, turns 1": {"loss": LOSS, "estimate": "block", "iterations": 1},
    "CLL, block, turns 2": {"loss": LOSS, "estimate": "block", "iterations": 1, "turns": 2},
    "CLL, block, turns 3": {"loss": LOSS, "estimate": "block", "iterations": 1, "turns": 3},
}
COMPILED: dict[str, dict[str, Any]] = {
    "CLL, krylov, compiled": {"loss": LOSS, "compile": True},
    "CLL, block, compiled": {"loss": LOSS, "estimate": "block", "iterations": 1, "compile": True},
}


class Calls(TorchDispatchMode):
    """Counts calls of ATen, and those that are kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.all, self.kernels = 0, 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        package, name, *_ = str(func).split(".")
        if package == "aten":
            self.all += 1
            self.kernels += name not in FREE
        return func(*args, **(kwargs or {}))


def images() -> Dataset:
    pixels = torch.randint(0, 256, (4 * BATCH, *SHAPE), dtype=torch.uint8)
    return Dataset(pixels, torch.arange(4 * BATCH) % 10, tuple(map(str, range(10))))


def plain() -> Callable[[], None]:
    """The obvious loop on the same shapes."""
    model = network()
    data, order = images(), torch.randperm(4 * BATCH).split(BATCH)
    steps = itertools.count()

    def batch() -> tuple[torch.Tensor, torch.Tensor]:
        index = order[next(steps) % len(order)]
        return data.x[index].float() / 255, data.y[index]

    return obvious.training_step(model, batch, torch.optim.Adam(model.parameters(), fused=True))


def network() -> nn.Sequential:
    found = create("4c3f", num_classes=10, input_shape=SHAPE, width=0.02, activation="relu")
    assert isinstance(found, nn.Sequential)
    return found


def engine(settings: Mapping[str, Any]) -> Callable[[], None]:
    plan = Plan(
        model=network(), optimizer=adam, train=images(), epochs=10**6, batch_size=BATCH, seed=0, **settings
    )
    return Single(Training(plan, Run(tempfile.mkdtemp()), Hardware("cpu").launch())).advance


def main() -> None:
    torch.set_num_threads(1)
    chosen = WORKS | (COMPILED if sys.argv[1:] == ["compiled"] else {})
    works = {"plain": plain(), **{name: engine(settings) for name, settings in chosen.items()}}
    counts: dict[str, tuple[str, str]] = {}
    for name, work in works.items():
        for _ in range(STEPS):
            work()
        if name in COMPILED:
            counts[name] = ("–", "–")
            continue
        with Calls() as calls:
            for _ in range(STEPS):
                work()
        counts[name] = (f"{calls.all / STEPS:.0f}", f"{calls.kernels / STEPS:.0f}")
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            start = time.process_time()
            for _ in range(STEPS):
                work()
            seconds[name].append(time.process_time() - start)
    rows = []
    for name in works:
        ratios = [a / b for a, b in zip(seconds[name], seconds["plain"], strict=True)]
        low, median, high = statistics.quantiles(ratios, n=4)
        rows.append([name, *counts[name], f"{median:.2f} ({low:.2f}–{high:.2f})"])
        print(*rows[-1], sep="  ", flush=True)
    note = (
        f"4C3F with 2 to 10 units per layer and ReLUs, batch {BATCH}, one thread, means over {STEPS} steps, "
    )
    note += f"{ROUNDS} interleaved rounds, process time, medians and quartiles"
    write_table("overhead", note, ["step", "ATen calls", "kernels", "time / plain"], rows)


if __name__ == "__main__":
    main()
