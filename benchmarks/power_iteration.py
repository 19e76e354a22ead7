"""How far below the truth power iteration lies after 5, 10, 100 and 500 iterations from a cold start.

The truth is the exact prover's bound, within 1e-6 of it. A fresh 4C3F, and the run directories or model files
given: `python benchmarks/power_iteration.py runs/moons-cll`. Writes results/power-iteration.json.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn

from lipcert.bounds.krylov import first_vector
from lipcert.bounds.proof import prove
from lipcert.bounds.tracing.program import trace
from lipcert.certificates.loading import load
from lipcert.models import create
from lipcert.models.model_files import model_file, read_card
from lipcert.types import Shape
from results import write_table

ITERATIONS = (5, 10, 100, 500)
STARTS = 5


def subjects(sources: list[str]) -> list[tuple[str, nn.Module, Shape]]:
    """Models by name."""
    torch.manual_seed(0)
    fresh = create("4c3f", num_classes=10, input_shape=(3, 32, 32)).eval()
    trained = [(Path(s).name, load(s), read_card(model_file(s)).input_shape) for s in sources]
    return [("4c3f, initialised", fresh, (3, 32, 32)), *trained]


@torch.no_grad()
def rows(name: str, model: nn.Module, shape: Shape) -> list[list[str]]:
    """A row a layer: the truth, and how many percent below it the median and the worst of five starts lie."""
    program = trace(model, shape)
    found = []
    for step, layer in zip(program.steps, prove(program, "exact").layers, strict=True):
        if not step.rule.has_vector:
            continue
        like = next(step.module.parameters())
        row = [name, f"{layer.path} {layer.kind}", "×".join(map(str, layer.shape)), f"{layer.upper:.6g}"]
        for iterations in ITERATIONS:
            below = sorted(
                100 * (1 - float(step.rule.estimate(step.module, vector)) / layer.upper)
                for seed in range(STARTS)
                for vector in [
                    step.rule.power(step.module, first_vector(step.input_shapes[0], seed, like), iterations)
                ]
            )
            row.append(f"{below[STARTS // 2]:.2g} ({below[-1]:.2g})")
        found.append(row)
        print(*row, sep="  ", flush=True)
    return found


def main() -> None:
    titles = ["model", "layer", "output", "proved norm", *(f"{n} iterations" for n in ITERATIONS)]
    sources = sys.argv[1:]
    note = "percent below the truth: median (worst) of five cold starts, float32 as in training"
    write_table(
        "power-iteration", note, titles, [row for subject in subjects(sources) for row in rows(*subject)]
    )


if __name__ == "__main__":
    main()
