"""Where the time of a training step goes: operators of torch, two moons and 4C3F with CLL.

Writes results/profile-moons.json and results/profile-image.json.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable

import torch
from step import training
from torch.profiler import ProfilerActivity, profile

from lipcert.commands.support.allocator import keep_freed_memory
from lipcert.recipes import read_recipe
from lipcert.recipes.execution import build
from lipcert.runs import Run
from lipcert.train import Hardware
from lipcert.train.stacked.stack import Stack
from lipcert.train.state import Training
from results import write_table

SHOWN = 8


def moons() -> Callable[[], None]:
    plan, _ = build(read_recipe("moons-cll"))
    keep_freed_memory()  # as the command line does
    return Stack([Training(plan, Run(tempfile.mkdtemp()), Hardware("cpu").launch())]).advance


def image() -> Callable[[], None]:
    return training("4c3f", "engine, CLL").advance


def measure(step: Callable[[], None], steps: int) -> tuple[list[list[str]], str]:
    """The operators that take most, and the number of all calls."""
    for _ in range(5):
        step()
    with profile(activities=[ProfilerActivity.CPU]) as found:
        for _ in range(steps):
            step()
    events = found.key_averages()
    total = sum(event.self_cpu_time_total for event in events)
    calls = sum(event.count for event in events if event.key.startswith("aten::")) / steps
    first = sorted(events, key=lambda event: -event.self_cpu_time_total)[:SHOWN]
    rows = [
        [
            event.key.removeprefix("aten::"),
            f"{event.count / steps:g}",
            f"{100 * event.self_cpu_time_total / total:.1f}",
        ]
        for event in first
    ]
    return rows, f"{calls:.0f} calls of torch's operators a step in all"


def main() -> None:
    titles = ["operator", "calls a step", "share of the time [%]"]
    for name, make, threads, steps in (("moons", moons, 1, 200), ("image", image, 2, 10)):
        torch.set_num_threads(threads)
        rows, note = measure(make(), steps)
        for row in rows:
            print(name, *row, sep="  ")
        write_table(f"profile-{name}", f"{note}; threads: {threads}", titles, rows)


if __name__ == "__main__":
    main()
