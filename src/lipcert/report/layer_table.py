"""Layer by layer: from below, as estimated, and as proved; the head last, which makes K_f of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn

from lipcert.bounds.bounded import checked_classes
from lipcert.bounds.fidelity.snapshot import frozen_copy
from lipcert.bounds.krylov import first_vector
from lipcert.bounds.lower_bound import lower_of, not_less
from lipcert.bounds.provers.rounding import TINY_ROOT, U
from lipcert.bounds.tracing.program import Program, Step, trace
from lipcert.certificates.head import Head
from lipcert.certificates.loading import load
from lipcert.models.model_files import model_file, read_card
from lipcert.report.report_inputs import Finished
from lipcert.tables import Column, Table
from lipcert.tables.kinds import EXACT_CONSTANT, LOWER_BOUND, NOTHING, SETTING, TEXT, UPPER_BOUND, shape_text
from lipcert.types import PairLip


@dataclass(frozen=True)
class LayerRow:
    """One layer with its constant: from below (None: not known), estimated, and proved from above."""

    layer: str
    type: str
    output: tuple[int, ...]
    lower: float | None
    estimate: float
    upper: float
    prover: str


def layer_table(rows: Sequence[LayerRow], name: str) -> Table[LayerRow]:
    """Lay out one line per layer; `name` is that of the files."""
    return Table(
        [
            Column("layer", TEXT, lambda row: row.layer),
            Column("type", TEXT, lambda row: row.type),
            Column("output", SETTING, lambda row: shape_text(row.output)),
            Column("at least", LOWER_BOUND, lambda row: row.lower),
            Column("estimate", EXACT_CONSTANT, lambda row: row.estimate),
            Column("at most (proved)", UPPER_BOUND, lambda row: row.upper),
            Column("prover", TEXT, lambda row: row.prover),
        ],
        rows,
        name=name,
        title="Layer by layer",
    )


# Products with WᵀW behind the estimate column: what a long training converges to.
_ITERATIONS = 100


@torch.no_grad()
def estimate_of(step: Step) -> float:
    """Estimate the constant of a layer from below."""
    vector = None
    if step.rule.has_vector:
        like = next(chain(step.module.parameters(), step.module.buffers()))
        vector = step.rule.iterate(step.module, first_vector(step.input_shapes[0], 0, like), _ITERATIONS)
    return float(step.rule.estimate(step.module, vector))


def layers_of(run: Finished) -> list[LayerRow]:
    """Return one row per layer of the network that the certificate speaks of."""
    shape = read_card(model_file(str(run.run.path))).input_shape
    program = trace(frozen_copy(load(run.run.path, run.certificate).eval()), shape)
    features, head = program.split_head()
    rows = [
        LayerRow(
            layer=layer.path,
            type=layer.kind,
            output=tuple(layer.shape),
            lower=lower_of(step),
            estimate=estimate_of(step),
            upper=layer.upper,
            prover=layer.prover,
        )
        for step, layer in zip(features.steps, run.certificate.layers, strict=True)
    ]
    return [*rows, head_row(program, head)]


def head_row(program: Program, head: nn.Linear | None) -> LayerRow:
    """Return the row of the head: the largest ‖w_i − w_j‖ over pairs of classes."""
    path, linear = NOTHING, Head.identity(max(checked_classes(program), 2))
    if head is not None:
        path, linear = program.steps[-1].path, Head.linear(head)
    rows = linear.rows.detach()
    return LayerRow(
        layer=f"{path} (head)",
        type=type(linear.layer).__name__,
        output=(len(rows),),
        lower=spread_lower(rows),
        estimate=_spread(rows),
        upper=float(linear.spread.max()),
        prover="pairs",
    )


def spread_lower(rows: Tensor) -> float:
    """Return the largest ‖w_i − w_j‖, from below."""
    d = rows.shape[1]
    return not_less(_spread(rows) * (1 - (d + 16) * U) - d * TINY_ROOT)


def _spread(rows: Tensor) -> float:
    return float(PairLip(rows.new_ones(()), rows).max())
