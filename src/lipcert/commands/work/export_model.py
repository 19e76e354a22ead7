"""Export a trained model as an ONNX file, with its description."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lipcert.bounds.proof import Effort
from lipcert.certificates.certifier import certifier
from lipcert.certificates.loading import load as load_model
from lipcert.certificates.progress import proving, waiting
from lipcert.certificates.statement import find_certificate
from lipcert.errors import InputError
from lipcert.export import export_onnx
from lipcert.hashing import tensors_sha256
from lipcert.models.model_files import model_file, read_card
from lipcert.models.trained import model_place


def export_model(source: str, path: Path, float32: bool, effort: Effort) -> list[str]:
    """Prove, trace, write; lines that say what was written."""
    if path.suffix != ".onnx":
        raise InputError(f"{path}: expected a name that ends in .onnx")
    card = read_card(model_file(source))
    model = load_model(source)
    with proving():
        prover = certifier(model, card.input_shape, effort)
    facts: dict[str, Any] = {"model": card.name, "model_sha256": tensors_sha256(model.state_dict())}
    if card.classes:
        facts["classes"] = list(card.classes)
    statement = find_certificate(model_place(source))
    if statement is not None:
        facts["certificate"] = statement.to_json()
    with waiting("writing the graph"):
        export_onnx(prover, path, float32=float32, metadata=facts)
    kind = "float32" if float32 else "float64"
    shape = "×".join(map(str, card.input_shape))
    return [
        f"wrote {path}: x ({kind}, batch×{shape}) → logits, class, radius; K_f ≤ {prover.k_f:.6g} (proved)"
    ]
