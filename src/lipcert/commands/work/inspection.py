"""Show a model layer by layer: shapes, estimates, proved constants, provers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from torch import nn

from lipcert.bounds.proof import Effort
from lipcert.bounds.tracing.program import trace
from lipcert.bounds.upper_bound import upper
from lipcert.certificates.loading import load
from lipcert.errors import InputError
from lipcert.models.files import model_file, read_card
from lipcert.models.python_files import is_python, load_python
from lipcert.report.layers import estimate_of
from lipcert.types import Shape


def inspection_of(source: str, input_shape: str | None, effort: Effort) -> Table:
    """Return the table for the arguments of the command."""
    if is_python(source):
        if input_shape is None:
            raise InputError("--input-shape: a model of your own needs one, such as 3,32,32")
        return inspection_table(load_python(source), _parsed(input_shape), effort)
    shape = read_card(model_file(source)).input_shape
    if input_shape is not None and _parsed(input_shape) != shape:
        raise InputError(f"--input-shape: {source} is made for {shape}")
    return inspection_table(load(source), shape, effort)


def _parsed(shape: str) -> Shape:
    try:
        return tuple(int(part) for part in shape.split(","))
    except ValueError:
        raise InputError(f"--input-shape: expected numbers with commas between, got {shape!r}") from None


def inspection_table(model: nn.Module, input_shape: Sequence[int], effort: Effort = "auto") -> Table:
    """Return every layer of a model whose parts have rules; the last line is the whole model."""
    bound = upper(model, input_shape, effort)
    program = trace(model, input_shape)
    table = Table(title=f"input {tuple(input_shape)}: K ≤ {bound.value:.6g}, proved")
    for title in ("layer", "type", "output", "estimate", "proved", "prover", "seconds"):
        table.add_column(title, justify="left" if title in ("layer", "type", "prover") else "right")
    for step, layer in zip(program.steps, bound.layers, strict=True):
        table.add_row(
            layer.path,
            layer.kind,
            "×".join(map(str, layer.shape)),
            f"{estimate_of(step):.6g}",
            f"{layer.upper:.6g}",
            layer.prover,
            f"{layer.seconds:.2f}",
        )
    return table
