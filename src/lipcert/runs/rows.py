"""A finished run as one row of numbers: what tables, results and documents are made of."""

from __future__ import annotations

import json
from typing import Any

from lipcert.errors import InputError
from lipcert.runs.directory import RunDirectory

Row = dict[str, Any]


def findings_of(run: RunDirectory) -> Row:
    """Everything found, flat: `test clean`, `test CRA 36/255`, K_f, K_hf, tightness, seconds."""
    found = _certificate_of(run)
    row: Row = {}
    for name, split in found["splits"].items():
        row[f"{name} clean"] = split["clean"]["value"]
        row |= {f"{name} CRA {fraction(c['radius'])}": c["value"] for c in split["certified"]}
    constants = {"K_f": found["k_f"], "K_hf": found["k_hf"], "tightness": tightness_of(run)}
    return {**row, **constants, "seconds": found["seconds"]}


def shown_split(certificate: Row) -> str:
    """The split whose numbers are shown: the one that training has not seen, test if there is one."""
    splits = certificate["splits"]
    return "test" if "test" in splits else str(list(splits)[-1])


def tightness_of(run: RunDirectory) -> float | None:
    """From the run's tightness.json, if it was measured."""
    path = run.path / "tightness.json"
    if not path.is_file():
        return None
    found: Row = json.loads(path.read_text())
    return float(found["tightness"])


def fraction(radius: float) -> str:
    """36/255 for the radii of the field.

    Example:
        >>> fraction(36 / 255), fraction(0.15)
        ('36/255', '0.15')
    """
    pixels = radius * 255
    return f"{round(pixels)}/255" if abs(pixels - round(pixels)) < 1e-9 else f"{radius:g}"


def _certificate_of(run: RunDirectory) -> Row:
    if not run.certificate.is_file():
        raise InputError(f"{run.path}: no certificate.json in it (is the run finished?)")
    try:
        found: Row = json.loads(run.certificate.read_text())
    except ValueError:
        raise InputError(f"{run.certificate}: not JSON") from None
    return found


def row_of(run: RunDirectory) -> Row:
    """The findings of a run at the first of its radii, accuracies as fractions."""
    found = _certificate_of(run)
    row: Row = {
        "recipe": found["recipe"],
        "seed": found["seed"],
        "loss": found["loss"]["name"],
        "eps": found["splits"][next(iter(found["splits"]))]["certified"][0]["radius"],
        "slack": found["loss"]["slack"],
        "loss_eps": found["loss"]["eps"],
        "k_f": found["k_f"],
        "k_hf": found["k_hf"],
        "seconds": found["seconds"],
        "environment": found["environment"],
    }
    for name, split in found["splits"].items():
        first = split["certified"][0]
        row[name] = {
            "samples": split["samples"],
            "clean": split["clean"]["value"],
            "cra": first["value"],
            "interval": first["interval"],
        }
    return row
