"""ONNX files that any runtime reads: logits, class and certified radius as outputs of one graph."""

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

# ONNX has these as they are; taken apart they are five times as many operators.
_KEPT = (torch.ops.aten.matmul.default, torch.ops.aten.linear.default)

OUTPUTS = ("logits", "class", "radius")


def export_onnx(
    prover: Certifier, path: Path, *, float32: bool = False, metadata: Mapping[str, Any] | None = None
) -> Path:
    """Write the network of a certifier: x → logits, class, radius, for batches of any size.

    The graph computes in float64, its input too; with `float32` as the network is deployed, at a price in the
    radius. `metadata` goes into the file beside what every file says of itself.
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
    """The graph in operators that mean the same in ONNX."""
    shapes = ({0: torch.export.Dim("batch")},)
    try:
        program: torch.export.ExportedProgram = torch.export.export(graph, (x,), dynamic_shapes=shapes)
    except GuardOnDataDependentSymNode as error:
        raise InputError(
            f"export: a layer's rule looks at its weights while it is traced ({error})"
        ) from None
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
    """Fold what is constant and share what is equal. All of torch's rules take a minute on deep networks."""
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
    """ONNX keeps numbers of some operators as float32, and few runtimes have those in float64."""
    for node in model.graph.node:
        factors_are_one = node.op_type == "Gemm"
        has_numbers = any(attribute.type == 1 for attribute in node.attribute)  # FLOAT
        if node.op_type in ("Erf", "Gelu") or (has_numbers and not factors_are_one):
            raise InputError(f"export: {node.op_type} has no exact float64 form in ONNX; --float32 has one")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """torch's exporter prints and warns of its own internals."""
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
        raise InputError(f"export: {error.name} is missing; pip install 'lipcert[onnx]' brings it") from None
