"""A finished run as one row of numbers, for tables, results and documents."""

from __future__ import annotations

from typing import Any

from lipcert.certificates.statement import Statement
from lipcert.data.base import Split
from lipcert.runs.run import Run

Row = dict[str, Any]


def findings_of(run: Run) -> Row:
    """Everything found, flat: `test clean`, `test CRA 36/255`, K_f, K_hf, tightness, seconds."""
    found = run.statement()
    row: Row = {}
    for name, split in found.splits.items():
        row[f"{name} clean"] = split.clean.value
        row |= {f"{name} CRA {fraction(c.radius)}": c.value for c in split.certified}
    constants = {"K_f": found.k_f, "K_hf": found.k_hf, "tightness": tightness_of(run)}
    return {**row, **constants, "seconds": found.seconds}


def shown_split(statement: Statement) -> Split:
    """Return the split whose numbers are shown: unseen in training, test if there is one."""
    return "test" if "test" in statement.splits else list(statement.splits)[-1]


def tightness_of(run: Run) -> float | None:
    """Return the tightness from the run's tightness.json, if it was measured."""
    found = run.tightness()
    return None if found is None else found.tightness


def fraction(radius: float) -> str:
    """Format a radius as a fraction such as 36/255, the usual form in the literature.

    Example:
        >>> fraction(36 / 255), fraction(0.15)
        ('36/255', '0.15')
    """
    pixels = radius * 255
    return f"{round(pixels)}/255" if abs(pixels - round(pixels)) < 1e-9 else f"{radius:g}"


def row_of(run: Run) -> Row:
    """Return the findings of a run at the first of its radii, accuracies as fractions."""
    found = run.statement()
    row: Row = {
        "recipe": found.recipe,
        "seed": found.seed,
        "loss": found.loss.name,
        "eps": next(iter(found.splits.values())).certified[0].radius,
        "slack": found.loss.slack,
        "loss_eps": found.loss.eps,
        "k_f": found.k_f,
        "k_hf": found.k_hf,
        "seconds": found.seconds,
        "environment": found.environment.model_dump(),
    }
    for name, split in found.splits.items():
        first = split.certified[0]
        row[name] = {
            "samples": split.samples,
            "clean": split.clean.value,
            "cra": first.value,
            "interval": first.interval,
        }
    return row
