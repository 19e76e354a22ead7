"""A finished run as one row of numbers: what tables, results and documents are made of."""

from __future__ import annotations

import json
from typing import Any

from lipcert.errors import InputError
from lipcert.train.rundir import RunDirectory

Row = dict[str, Any]


def row_of(run: RunDirectory) -> Row:
    """The findings of a run at the first of its radii, accuracies as fractions."""
    if not run.certificate.is_file():
        raise InputError(f"{run.path}: no certificate.json in it (is the run finished?)")
    found = json.loads(run.certificate.read_text())
    row: Row = {
        "recipe": found["recipe"],
        "seed": found["seed"],
        "loss": found["loss"]["name"],
        "eps": found["splits"][next(iter(found["splits"]))]["certified"][0]["radius"],
        "slack": found["loss"]["slack"],
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
