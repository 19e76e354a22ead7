"""ONNX files for any runtime: logits, class and certified radius as outputs of one graph."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

import lipcert
from lipcert.atomic import write_atomically
from lipcert.certificates.certifier import Certifier
from lipcert.errors import InputError
from lipcert.export.certified_graph import CertifiedGraph
from lipcert.export.patches import DECOMPOSITIONS, with_patches
from lipcert.export.scalars import arithmetic, register_tables, with_exact_scalars

# ONNX has these operators; decomposed they would be five times as many.
_KEPT = (torch.ops.aten.matmul.default, torch.ops.aten.linear.default)

OUTPUTS = ("logits", "class", "radius")


def export_onnx(
    prover: Certifier, path: Path, *, float32: bool = False, metadata: Mapping[str, Any] | None = None
) -> Path:
    """Write the network of a certifier: x → logits, class, radius, for batches of any size.

    The graph and its input are float64. With `float32` they are float32, as the network is deployed, at the
    cost of a smaller radius. `metadata` goes into the file beside lipcert's own entries.
    """
    _require_onnx()
    if float32 and not prover.proved.is_float32:
        raise InputError("float32: speaks of a network with float32 weights, this one has others")
    graph = CertifiedGraph(prover, float32).eval()
    x = torch.zeros(2, *prover.proved.input_shape, dtype=torch.float32 if float32 else torch.float64)
    with _quiet():
        program = torch.onnx.export(
            _traced(graph, x, float32),
            (x,),
            dynamo=True,
            input_names=["x"],
            output_names=list(OUTPUTS),
            verbose=False,
            optimize=False,
        )
        assert program is not None
        _simplify(program.model)
    model = program.model_proto
    if not float32:
        _refuse_numbers_of_32_bits(model)
    facts = {
        "lipcert": lipcert.__version__,
        "rounding": "float32" if float32 else "float64",
        "input_shape": list(prover.proved.input_shape),
        "k_f": prover.k_f,
        **(metadata or {}),
    }
    for key, value in facts.items():
        model.metadata_props.add(key=key, value=value if isinstance(value, str) else json.dumps(value))
    write_atomically(path, model.SerializeToString())
    return path


def _traced(graph: torch.nn.Module, x: torch.Tensor, float32: bool) -> torch.export.ExportedProgram:
    """Trace the graph into operators that mean the same in ONNX."""
    shapes = ({0: torch.export.Dim("batch")},)
    try:
        program: torch.export.ExportedProgram = torch.export.export(graph, (x,), dynamic_shapes=shapes)
    except GuardOnDataDependentSymNode as error:
        raise InputError(f"export: the rule of a layer reads its weights during tracing ({error})") from None
    table = {**torch.export.default_decompositions(), **DECOMPOSITIONS, **({} if float32 else arithmetic())}
    for kept in _KEPT:
        table.pop(kept, None)
    module = program.run_decompositions(table).module()
    register_tables(module)
    if not float32:
        with_exact_scalars(module)
    with_patches(module)
    again: torch.export.ExportedProgram = torch.export.export(module, (x,), dynamic_shapes=shapes)
    return again


def _simplify(model: Any) -> None:
    """Fold constants and share equal values. All of torch's rules would take a minute on deep networks."""
    from onnx_ir import passes
    from onnx_ir.passes import common
    from onnxscript import optimizer

    common.InlinePass()(model)
    optimizer.fold_constants(model)
    passes.Sequential(
        common.RemoveUnusedNodesPass(),
        common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        common.DeduplicateInitializersPass(),
        common.CommonSubexpressionEliminationPass(),
    )(model)


def _refuse_numbers_of_32_bits(model: Any) -> None:
    """Refuse operators whose numbers ONNX stores as float32, or that few runtimes have in float64."""
    for node in model.graph.node:
        factors_are_one = node.op_type == "Gemm"
        has_numbers = any(attribute.type == 1 for attribute in node.attribute)  # FLOAT
        if node.op_type in ("Erf", "Gelu") or (has_numbers and not factors_are_one):
            raise InputError(f"export: {node.op_type} has no exact float64 form in ONNX; use --float32")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence torch's exporter, which prints and warns of its own internals."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _require_onnx() -> None:
    try:
        for name in ("onnx", "onnxscript"):
            importlib.import_module(name)
    except ImportError as error:
        raise InputError(f"export: {error.name} is missing; run pip install 'lipcert[onnx]'") from None
