"""A certificate radius by radius, its check statement by statement, and predictions file by file."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from lipcert.certificates.predictions import Prediction
from lipcert.certificates.statement import Accuracy, Statement
from lipcert.certificates.verification import Check
from lipcert.recipes.budgets import with_remark
from lipcert.tables import Column, Table
from lipcert.tables.kinds import (
    COUNT,
    EXACT_PERCENT,
    LOWER_BOUND,
    PERCENT,
    PROVED_RADIUS,
    RADIUS,
    TEXT,
    UPPER_BOUND,
)

# Two constants that users meet side by side.
K_F_EXPLAINED = (
    "K_f bounds how fast a difference of two logits changes; inspect shows K, for all logits together"
)


def certificate_table(statement: Statement, budget: str | None = None) -> Table[Accuracy]:
    """Lay out the first split of a certificate, radius by radius; `budget` is that of the training."""
    (name, split), *_ = statement.splits.items()
    rounding = statement.rounding
    label = "ROUNDING IGNORED" if rounding == "ignored" else f"{rounding} rounding included"
    k_f = UPPER_BOUND.text(statement.k_f)
    return Table(
        [
            Column("radius", RADIUS, lambda row: row.radius),
            Column("accuracy", EXACT_PERCENT, lambda row: row.value),
            Column("from", EXACT_PERCENT, lambda row: row.interval[0]),
            Column("to", EXACT_PERCENT, lambda row: row.interval[1]),
            Column("count", COUNT, lambda row: row.count),
        ],
        split.rows,
        title=f"{name}: {split.samples:,} samples, K_f ≤ {k_f} (proved), {label}",
        note=with_remark("percent correct and certified, with exact 95 % binomial intervals", budget),
    )


def radius_line(radii: Tensor) -> str:
    """Sum up the radii of all samples, rounded down, with 0 where the class is wrong.

    Example:
        >>> import torch
        >>> radius_line(torch.tensor([0.0, 0.25, 0.5], dtype=torch.float64))
        'radius, 0 where the class is wrong: mean 0.25, median 0.25, largest 0.5'
    """
    found = {"mean": radii.mean(), "median": radii.median(), "largest": radii.max()}
    told = ", ".join(f"{name} {LOWER_BOUND.text(float(value))}" for name, value in found.items())
    return f"radius, 0 where the class is wrong: {told}"


def check_table(checks: Sequence[Check]) -> Table[Check]:
    """Lay out the statements of a certificate and whether they hold."""
    failed = sum(check.holds is False for check in checks)
    verdict = "every statement holds"
    if failed:
        verdict = f"{failed} statement{'s do' if failed > 1 else ' does'} NOT hold"
    elif any(check.is_unchecked for check in checks):
        verdict = "what was checked holds; not everything was checked"
    words = {True: "yes", False: "NO", None: "not checked"}
    return Table(
        [
            Column("statement", TEXT, lambda check: check.statement),
            Column("holds", TEXT, lambda check: words[check.holds] if check.is_claim else "not a claim"),
        ],
        checks,
        title=verdict,
    )


def prediction_table(predictions: Sequence[Prediction]) -> Table[Prediction]:
    """Lay out one line per image."""
    return Table(
        [
            Column("file", TEXT, lambda p: p.file),
            Column("class", TEXT, lambda p: "abstains" if p.label is None else p.label),
            Column("probability [%]", PERCENT, lambda p: p.probability),
            Column("radius", PROVED_RADIUS, lambda p: p.radius),
            Column("nearest rival", TEXT, lambda p: p.rival),
        ],
        predictions,
        note="no input within the radius (L2, pixels from 0 to 1) gets another class",
    )
