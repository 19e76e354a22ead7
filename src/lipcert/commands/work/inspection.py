"""Show a model layer by layer: shapes, estimates, proved constants, provers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn

from lipcert.bounds import LayerBound
from lipcert.bounds.tracing.program import trace
from lipcert.bounds.upper_bound import upper
from lipcert.certificates.certifier import certifier
from lipcert.certificates.loading import load
from lipcert.commands.work.own_model import Own, parsed_shape
from lipcert.errors import InputError
from lipcert.models.model_files import model_file, read_card
from lipcert.models.python_files import is_python, load_python
from lipcert.report.layer_table import estimate_of
from lipcert.tables import Column, Table
from lipcert.tables.kinds import EXACT_CONSTANT, FINE_SECONDS, SETTING, TEXT, UPPER_BOUND, shape_text
from lipcert.types import Effort

# Two constants that users meet side by side.
_NOTE = "K bounds how fast all logits change together; certificates need K_f, for a difference of two logits"


def inspection_of(
    source: str, input_shape: str | None, effort: Effort, weights: Path | None = None
) -> Table[InspectedLayer]:
    """Lay out the layers of the model that the command line names."""
    if is_python(source):
        if input_shape is None:
            raise InputError("--input-shape: a model of your own needs one, such as 3,32,32")
        return inspection_table(load_python(source, weights), parsed_shape(input_shape), effort)
    Own(weights).refuse(source)
    shape = read_card(model_file(source)).input_shape
    if input_shape is not None and parsed_shape(input_shape) != shape:
        raise InputError(f"--input-shape: {source} is made for {shape}")
    model = load(source)
    k_f = certifier(model, shape, effort).k_f
    table = inspection_table(model, shape, effort)
    return replace(table, note=f"{table.note}, here K_f ≤ {UPPER_BOUND.text(k_f)}")


@dataclass(frozen=True)
class InspectedLayer:
    """One layer: its proved constant, and the estimate of it."""

    bound: LayerBound
    estimate: float


def inspection_table(
    model: nn.Module, input_shape: Sequence[int], effort: Effort = "auto"
) -> Table[InspectedLayer]:
    """Lay out every layer of any model whose parts have rules; the title bounds the whole model."""
    bound = upper(model, input_shape, effort)
    program = trace(model, input_shape)
    rows = [
        InspectedLayer(layer, estimate_of(step))
        for step, layer in zip(program.steps, bound.layers, strict=True)
    ]
    return Table(
        [
            Column("layer", TEXT, lambda row: row.bound.path),
            Column("type", TEXT, lambda row: row.bound.kind),
            Column("output", SETTING, lambda row: shape_text(row.bound.shape)),
            Column("estimate", EXACT_CONSTANT, lambda row: row.estimate),
            Column("proved", UPPER_BOUND, lambda row: row.bound.upper),
            Column("prover", TEXT, lambda row: row.bound.prover),
            Column("seconds", FINE_SECONDS, lambda row: row.bound.seconds),
        ],
        rows,
        title=f"input {tuple(input_shape)}: K ≤ {UPPER_BOUND.text(bound.value)}, proved",
        note=_NOTE,
    )
