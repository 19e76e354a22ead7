"""Models loaded only if they are the ones that the certificates beside them speak of."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from lipcert.certificates.statement import Statement, find_certificate
from lipcert.errors import InputError
from lipcert.hashing import tensors_sha256
from lipcert.models.model_files import model_file, read_model
from lipcert.models.trained import WEIGHTS, is_packaged


def load(source: str | Path, statement: Statement | None = None) -> nn.Module:
    """Return the model of a run directory, a .safetensors file, the package or a hub, in evaluation mode.

    A name such as hf://owner/name or hf://owner/name@revision is a model of the Hugging Face Hub, which is
    downloaded unless it is in its cache. Files that are not as they were published are refused, and so are
    weights that are not those of the certificate beside them. `statement` is that certificate if it was read
    already.

    Example:
        >>> load("moons-cll")[0]
        Linear(in_features=2, out_features=10, bias=True)
    """
    file = model_file(source)
    model = read_model(file)
    if statement is None and file.name == WEIGHTS:
        statement = find_certificate(file.parent)
    if statement is not None and tensors_sha256(model.state_dict()) != statement.model_sha256:
        remedy = "install lipcert again" if is_packaged(file.parent) else "one of the two was replaced"
        raise InputError(f"{file.parent}: the weights are not those of the certificate; {remedy}")
    return model
