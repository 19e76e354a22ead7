"""What a certificate costs beside a plain forward pass, for each way to treat rounding; batch 512.

Untrained weights: the time does not depend on them. The proof is made once and not part of it. Writes
results/certify.json.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from timing import Timing, interleaved
from torch import nn

from lipcert import certifier
from lipcert.models import create
from lipcert.nn import MinMax
from results import write_table

SHAPE = (3, 32, 32)


def many_classes() -> nn.Sequential:
    """The convolutions of a 4C3F before dense layers of width 2048 and a head for 1000 classes."""
    layers = list(create("4c3f", num_classes=10, input_shape=SHAPE))
    dense = [nn.Linear(4096, 2048), MinMax(), nn.Linear(2048, 2048), MinMax(), nn.Linear(2048, 1000)]
    return nn.Sequential(*layers[: -len(dense)], *dense)


def measure(model: nn.Module, rounds: int) -> dict[str, Timing]:
    double = copy.deepcopy(model).double()
    prover = certifier(model, SHAPE, effort="fast")
    x = torch.rand(512, *SHAPE)
    x64 = x.double()
    works: dict[str, Callable[[], object]] = {
        "float32 forward": lambda: model(x),
        "certify, rounding ignored": lambda: prover(x, "ignored"),
        "float64 forward": lambda: double(x64),
        "certify, float64": lambda: prover(x64, "float64"),
        "certify, float32": lambda: prover(x64, "float32"),
    }
    with torch.no_grad():
        return interleaved(works, rounds)


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(2)
    table = []
    models = {
        "4C3F": create("4c3f", num_classes=10, input_shape=SHAPE),
        "4C3F, N = 1000, D = 2048": many_classes(),
    }
    for name, model in models.items():
        timings = measure(model.eval(), rounds=15)
        for work, base in (
            ("certify, rounding ignored", "float32 forward"),
            ("certify, float64", "float64 forward"),
            ("certify, float32", "float64 forward"),
        ):
            table.append([name, work, base, str(timings[work].ratio(timings[base]))])
            print(*table[-1], sep="  ")
    note = "batch 512, two threads, interleaved, medians and quartiles, proofs cached"
    write_table("certify", note, ["model", "work", "to", "ratio"], table)


if __name__ == "__main__":
    main()
