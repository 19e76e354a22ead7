"""What the paper says about its formulas, computed."""

from __future__ import annotations

import pytest
import torch

from lipcert.losses import CLL
from lipcert.paper import formula_claims
from lipcert.paper.definition import Claim
from lipcert.paper.formula_claims import CALIBRATED, CERTIFICATION, CONVERGED, METHOD, MOONS
from lipcert.paper.verdict import TRUE_BY_DEFINITION, Consistency, Verdict, Word


@pytest.mark.parametrize("claim", [CALIBRATED, *METHOD, MOONS], ids=lambda claim: claim.text)
def test_definitions_agree_with_the_code(claim: Claim) -> None:
    found = claim.check(())
    assert isinstance(found, Consistency)
    assert found.said == TRUE_BY_DEFINITION, found.found


@pytest.mark.parametrize("claim", METHOD, ids=lambda claim: claim.text)
def test_a_loss_with_another_scale_would_be_noticed(claim: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    """The offset of half a margin more, and a K_hf that rises with p."""
    own = CLL.margin.func  # type: ignore[attr-defined]
    monkeypatch.setattr(CLL, "margin", property(lambda self: own(self) + 0.5))
    monkeypatch.setattr(CLL, "whole_lipschitz", lambda self, k_f: float(self.scale))
    found = claim.check(())
    assert isinstance(found, Consistency)
    assert not found.agrees


def test_moons_that_are_closer_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    load = formula_claims.load
    monkeypatch.setattr(formula_claims, "load", lambda name, split: load(name, split=split, noise=0.2))
    found = MOONS.check(())
    assert isinstance(found, Consistency)
    assert not found.agrees


def test_the_runner_up_alone_certifies_nothing() -> None:
    verdict = CERTIFICATION.check(())
    assert isinstance(verdict, Verdict)
    assert verdict.word is Word.FAILS
    assert "1.0 by the runner-up, 0.015 over all rivals" in verdict.found


def test_power_iteration_stops_short_of_the_norm() -> None:
    verdict = CONVERGED.check(())
    assert isinstance(verdict, Verdict)
    assert verdict.word is Word.FAILS


def test_power_iteration_reaches_a_norm_that_stands_apart() -> None:
    generator = torch.Generator().manual_seed(1)
    apart = torch.diag(torch.tensor([3.0, 1.0, 0.5], dtype=torch.float64))
    assert formula_claims._iterated(apart, generator) == pytest.approx(3.0, abs=1e-9)
