"""`lipcert attack`: attack a certified model and return typed findings."""

from __future__ import annotations

import torch

from lipcert.attack import ATTACKS, Band, attack
from lipcert.certificates.certificate import Rounding
from lipcert.certificates.statement import DataSource
from lipcert.commands.work.certify_model import Subject
from lipcert.commands.work.own_model import ALREADY_KNOWN, Own
from lipcert.data.base import Split
from lipcert.environment import Environment, environment
from lipcert.hashing import tensors_sha256
from lipcert.strict_files import Strict
from lipcert.types import BudgetName

_CPU = torch.device("cpu")


class RadiusCounts(Strict):
    """The samples that are certified at a radius, and those for which no attack found a counterexample."""

    radius: float
    certified: int
    empirical: int


class AttackFindings(Strict):
    """The content of attack.json: what was attacked, how, and what was found."""

    model_sha256: str
    data: DataSource
    split: Split
    rounding: Rounding
    local: list[float]
    budget: BudgetName
    attacks: list[str]
    samples: int
    clean: int
    radii: list[RadiusCounts]
    points: int
    closest: dict[str, int]  # samples on which an attack came closest
    broken: list[int]  # indices of samples whose certificate is refuted
    environment: Environment


def attack_model(
    source: str,
    data_name: str | None,
    split: Split,
    radii: str | None,
    rounding: Rounding,
    budget: BudgetName,
    local: bool,
    device: torch.device = _CPU,
    own: Own = ALREADY_KNOWN,
) -> tuple[Band, AttackFindings]:
    """Return the band, and the findings for a file."""
    it = Subject.open(source, data_name, split, radii, device=device, own=own)
    balls = it.balls if local else ()
    band = attack(it.model, it.prover, it.data, it.radii, budget, rounding, local=balls)
    rows = [
        RadiusCounts(radius=r, certified=band.certified(r), empirical=band.empirical(r)) for r in it.radii
    ]
    return band, AttackFindings(
        model_sha256=tensors_sha256(it.model.state_dict()),
        data=it.described,
        split=split,
        rounding=rounding,
        local=list(balls),
        budget=budget,
        attacks=list(ATTACKS),
        samples=len(band.correct),
        clean=band.clean(),
        radii=rows,
        points=band.points,
        closest=band.found_by,
        broken=band.broken,
        environment=environment(),
    )
