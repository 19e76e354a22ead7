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

import lipcert
from lipcert.atomic import write_atomically
from lipcert.certificate import Certifier
from lipcert.errors import InputError
from lipcert.export.certified_graph import CertifiedGraph
from lipcert.export.patches import DECOMPOSITIONS

OUTPUTS = ("logits", "class", "radius")


def export_onnx(
    prover: Certifier, path: Path, *, float32: bool = False, metadata: Mapping[str, Any] | None = None
) -> Path:
    """Write the network of a certifier: x → logits, class, radius, for batches of any size.

    The graph computes in float64, its input too; with `float32` as the network is deployed, at a price in the
    radius. `metadata` goes into the file beside what every file says of itself.
    """
    _require_onnx()
    if float32 and not prover.is_float32:
        raise InputError("float32: speaks of a network with float32 weights, this one has others")
    graph = CertifiedGraph(prover, float32).eval()
    x = torch.zeros(2, *prover.input_shape, dtype=torch.float32 if float32 else torch.float64)
    with _quiet():
        traced = torch.export.export(graph, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
        table = {**torch.export.default_decompositions(), **DECOMPOSITIONS}
        program = torch.onnx.export(
            traced.run_decompositions(table),
            (x,),
            dynamo=True,
            input_names=["x"],
            output_names=list(OUTPUTS),
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    facts = {
        "lipcert": lipcert.__version__,
        "rounding": "float32" if float32 else "float64",
        "input_shape": list(prover.input_shape),
        "k_f": prover.k_f,
        **(metadata or {}),
    }
    for key, value in facts.items():
        model.metadata_props.add(key=key, value=value if isinstance(value, str) else json.dumps(value))
    write_atomically(path, model.SerializeToString())
    return path


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
