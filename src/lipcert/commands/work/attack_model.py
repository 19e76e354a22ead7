"""`lipcert attack`: attack a certified model and return the results as plain data."""

from __future__ import annotations

from typing import Any

from lipcert.attack import ATTACKS, Band, BudgetName, attack
from lipcert.certificates.certificate import Rounding
from lipcert.commands.work.certify_model import Subject
from lipcert.data.base import Split
from lipcert.environment import environment
from lipcert.hashing import tensors_sha256


def attack_model(
    source: str,
    data_name: str | None,
    split: Split,
    radii: str | None,
    rounding: Rounding,
    budget: BudgetName,
    local: bool,
    quiet: bool,
) -> tuple[Band, dict[str, Any]]:
    """Return the band, and the findings for JSON."""
    it = Subject.open(source, data_name, split, radii)
    balls = it.balls if local else ()
    band = attack(it.model, it.prover, it.data, it.radii, budget, rounding, local=balls, quiet=quiet)
    rows = [{"radius": r, "certified": band.certified(r), "empirical": band.empirical(r)} for r in it.radii]
    return band, {
        "model_sha256": tensors_sha256(it.model.state_dict()),
        "data": it.described,
        "split": split,
        "rounding": rounding,
        "local": list(balls),
        "budget": budget,
        "attacks": list(ATTACKS),
        "samples": len(band.right),
        "clean": band.clean(),
        "radii": rows,
        "points": band.points,
        "closest": band.found_by,
        "broken": band.broken,
        "environment": environment(),
    }
