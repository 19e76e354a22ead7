"""Peak memory of a training with CLL against cross-entropy in our engine, each in a process of its own.

Writes results/memory.json.
"""

from __future__ import annotations

import resource
import subprocess
import sys

import torch
from step import training

from results import write_table

MODELS = ("4c3f", "8c2f")


def peak(name: str, work: str) -> float:
    """The largest resident size in ten steps, in megabytes."""
    torch.set_num_threads(2)
    step = training(name, work).advance
    for _ in range(10):
        step()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    table = []
    for name in MODELS:
        works = ("engine, cross-entropy", "engine, CLL")
        commands = ([sys.executable, __file__, name, work] for work in works)
        plain, cll = (float(subprocess.check_output(command)) for command in commands)
        table.append([name, f"{plain:.0f}", f"{cll:.0f}", f"{cll / plain:.3f}"])
        print(*table[-1], sep="  ", flush=True)
    note = "largest resident size in ten steps of batch 128, in megabytes"
    write_table("memory", note, ["model", "cross-entropy", "CLL", "ratio"], table)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(peak(*sys.argv[1:]))
    else:
        main()
