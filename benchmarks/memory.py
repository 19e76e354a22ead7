"""Peak memory of a training with CLL against plain cross-entropy, each in a process of its own.

Writes results/memory.json.
"""

from __future__ import annotations

import resource
import subprocess
import sys

import torch
from step import BATCH, SHAPES, images, plain_step, training

from lipcert.losses import CLL
from results import write_table


def peak(name: str, kind: str) -> float:
    """The largest resident size in ten steps, in megabytes; both hold the same images."""
    torch.set_num_threads(2)
    held = [images(name, count) for count in (4 * BATCH, SHAPES[name][2])] if kind == "plain" else []
    cll = CLL(eps=0.15, slack=0.15, lam=1e-4)
    step = plain_step(name) if kind == "plain" else training(name, cll)._advance
    for _ in range(10):
        step()
    del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    table = []
    for name in SHAPES:
        commands = ([sys.executable, __file__, name, kind] for kind in ("plain", "cll"))
        plain, cll = (float(subprocess.check_output(command)) for command in commands)
        table.append([name, f"{plain:.0f}", f"{cll:.0f}", f"{cll / plain:.3f}"])
        print(*table[-1], sep="  ", flush=True)
    note = "largest resident size in ten steps of batch 128, in megabytes"
    write_table("memory", note, ["model", "plain", "CLL", "ratio"], table)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(peak(*sys.argv[1:]))
    else:
        main()
