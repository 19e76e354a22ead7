"""Seconds to prove the bounds of freshly initialised networks, with nothing remembered.

Absolute times, of this machine. Writes results/proof-times.json.
"""

from __future__ import annotations

import time

import torch

from lipcert.bounds import upper
from lipcert.bounds.provers.proof_cache import fresh_proofs
from lipcert.models import create
from results import write_table

CASES = [("4c3f", 10, (3, 32, 32), "exact"), ("8c2f", 200, (3, 64, 64), "fast")]


def main() -> None:
    torch.set_num_threads(2)
    table = []
    for name, classes, shape, effort in CASES:
        torch.manual_seed(0)
        model = create(name, num_classes=classes, input_shape=shape).eval()
        start = time.perf_counter()
        with fresh_proofs():
            bound = upper(model, shape, effort=effort)
        seconds = time.perf_counter() - start
        table.append([name, effort, f"{bound.value:.6g}", f"{seconds:.1f}"])
        print(*table[-1], sep="  ")
    write_table("proof-times", "two threads", ["model", "effort", "bound", "seconds"], table)


if __name__ == "__main__":
    main()
