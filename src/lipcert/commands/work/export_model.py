"""Export a trained model as an ONNX file, with its description."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lipcert.atomic import check_file_place
from lipcert.certificates.certifier import certifier
from lipcert.certificates.loading import load as load_model
from lipcert.certificates.statement import find_certificate
from lipcert.errors import InputError
from lipcert.export import export_onnx
from lipcert.hashing import tensors_sha256
from lipcert.models.model_files import model_file, read_card
from lipcert.models.model_names import model_place
from lipcert.progress import proving, waiting
from lipcert.tables.kinds import UPPER_BOUND, shape_text
from lipcert.types import Effort


def export_model(source: str, path: Path, float32: bool, effort: Effort) -> list[str]:
    """Prove the bounds, write the ONNX file, and return lines that say what was written."""
    if path.suffix != ".onnx":
        raise InputError(f"{path}: expected a name that ends in .onnx")
    check_file_place(path)
    card = read_card(model_file(source))
    statement = find_certificate(model_place(source))
    model = load_model(source, statement)
    with proving():
        prover = certifier(model, card.input_shape, effort)
    facts: dict[str, Any] = {"model": card.name, "model_sha256": tensors_sha256(model.state_dict())}
    if card.classes:
        facts["classes"] = list(card.classes)
    if statement is not None:
        facts["certificate"] = statement.to_json()
    path.parent.mkdir(parents=True, exist_ok=True)
    with waiting("writing the graph"):
        export_onnx(prover, path, float32=float32, metadata=facts)
    kind = "float32" if float32 else "float64"
    shape, k_f = shape_text(card.input_shape), UPPER_BOUND.text(prover.k_f)
    return [f"wrote {path}: x ({kind}, batch×{shape}) → logits, class, radius; K_f ≤ {k_f} (proved)"]
