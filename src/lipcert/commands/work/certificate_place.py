"""The file that `lipcert certify` writes, chosen and checked before anything is proved."""

from __future__ import annotations

from pathlib import Path

from lipcert.atomic import check_file_place
from lipcert.certificates.statement import read_certificate
from lipcert.data.base import Split
from lipcert.errors import InputError
from lipcert.models.manifest import is_published
from lipcert.models.model_files import model_file
from lipcert.models.python_files import is_python
from lipcert.models.trained import CERTIFICATE, is_packaged
from lipcert.runs import Run


def certificate_place(source: str, split: Split, output: Path | None) -> Path | None:
    """Choose where the certificate goes: as told, else into the run, else into the current directory.

    Nothing is written into a pretrained or a published model. A model of one's own has no run, and gets a
    certificate only where it is told to.
    """
    if output is not None or is_python(source):
        return output
    file = model_file(source)
    run = Run(file.parent)
    in_run = file.name == run.model.name and not is_packaged(file.parent) and not is_published(file.parent)
    return run.certificate_of(split) if in_run else Path(CERTIFICATE)


def check_certificate_place(place: Path, model_sha256: str) -> None:
    """Raise if the file cannot be written, or if it is not an earlier certificate of the same model."""
    check_file_place(place)
    if not place.exists():
        return
    remedy = "remove it, or choose another place with --output"
    try:
        found = read_certificate(place)
    except InputError as error:
        raise InputError(f"{error}; {remedy}") from None
    if found.model_sha256 != model_sha256:
        name = found.recipe or found.model.name
        raise InputError(f"{place}: is the certificate of another model ({name}); {remedy}")
