"""Show constants layer by layer: from below, as estimated, and as proved; the head comes last."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Context

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
from lipcert.models.files import model_file, read_card
from lipcert.report.sources import Finished
from lipcert.types import PairLip

TITLES = ["layer", "type", "output", "at least", "estimate", "at most (proved)", "prover"]

_DOWN = Context(prec=6, rounding=ROUND_FLOOR)


# Products with WᵀW behind the estimate column: the limit of a long training.
_ITERATIONS = 100


@torch.no_grad()
def estimate_of(step: Step) -> float:
    """Estimate the constant of a layer from below."""
    vector = None
    if step.rule.has_vector:
        like = next(step.module.parameters())
        vector = step.rule.iterate(step.module, first_vector(step.input_shapes[0], 0, like), _ITERATIONS)
    return float(step.rule.estimate(step.module, vector))


def layers_of(run: Finished) -> list[list[str]]:
    """Return one row per layer of the certified network."""
    shape = read_card(model_file(str(run.run.path))).input_shape
    program = trace(frozen_copy(load(run.run.path).eval()), shape)
    features, head = program.split_head()
    rows = []
    for step, layer in zip(features.steps, run.certificate.layers, strict=True):
        bounds = _bounds(lower_of(step), estimate_of(step), layer.upper)
        rows.append([layer.path, layer.kind, _size(layer.shape), *bounds, layer.prover])
    return [*rows, head_row(program, head)]


def head_row(program: Program, head: nn.Linear | None) -> list[str]:
    """Return the row of the head: the largest ‖w_i − w_j‖ over pairs of classes."""
    path, linear = "–", Head.identity(max(checked_classes(program), 2))
    if head is not None:
        path, linear = program.steps[-1].path, Head.linear(head)
    rows = linear.rows.detach()
    estimate, upper = _spread(rows), float(linear.spread.max())
    bounds = _bounds(spread_lower(rows), estimate, upper)
    return [f"{path} (head)", type(linear.layer).__name__, str(len(rows)), *bounds, "pairs"]


def spread_lower(rows: Tensor) -> float:
    """Bound the largest ‖w_i − w_j‖ from below."""
    d = rows.shape[1]
    return not_less(_spread(rows) * (1 - (d + 16) * U) - d * TINY_ROOT)


def _spread(rows: Tensor) -> float:
    return float(PairLip(rows.new_ones(()), rows).max())


def _size(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape))


def _bounds(lower: float | None, estimate: float, upper: float) -> list[str]:
    return ["–" if lower is None else down(lower), f"{estimate:.6g}", f"{upper:.6g}"]


def down(value: float) -> str:
    """Format six digits that are not above the value.

    Example:
        >>> down(0.9999999), down(2.0)
        ('0.999999', '2')
    """
    return f"{float(_DOWN.create_decimal_from_float(value)):.6g}"
