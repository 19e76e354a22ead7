"""A model layer by layer: shapes, estimates, proved constants, provers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from rich.table import Table
from torch import nn

from lipcert.bounds.graph import Step, trace
from lipcert.bounds.power_iteration import first_vector
from lipcert.bounds.proof import Effort, prove

# Power iterations behind the estimate column: what a long training converges to.
_ITERATIONS = 100


def inspection_table(model: nn.Module, input_shape: Sequence[int], effort: Effort = "auto") -> Table:
    """Every layer of any model whose parts have rules; the last line is the whole model."""
    program = trace(model, input_shape)
    bound = prove(program, effort)
    table = Table(title=f"input {tuple(input_shape)}: K ≤ {bound.value:.6g}, proved")
    for title in ("layer", "type", "output", "estimate", "proved", "prover", "seconds"):
        table.add_column(title, justify="left" if title in ("layer", "type", "prover") else "right")
    for step, layer in zip(program.steps, bound.layers, strict=True):
        table.add_row(
            layer.path,
            layer.kind,
            "×".join(map(str, layer.shape)),
            f"{_estimate(step):.6g}",
            f"{layer.upper:.6g}",
            layer.prover,
            f"{layer.seconds:.2f}",
        )
    return table


@torch.no_grad()
def _estimate(step: Step) -> float:
    vector = None
    if step.rule.has_vector:
        like = next(step.module.parameters())
        vector = step.rule.iterate(step.module, first_vector(step.input_shapes[0], 0, like), _ITERATIONS)
    return float(step.rule.estimate(step.module, vector))
