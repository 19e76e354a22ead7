"""What every registered reproduction obeys."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from lipcert import InputError
from lipcert.paper import REPRODUCTIONS
from lipcert.paper.definition import BUDGETS, Variant
from lipcert.sweeps import Trial


@cache
def laid_out(name: str, budget: str) -> list[tuple[Variant, Trial]]:
    """Every training; each recipe is read once, which takes long."""
    return REPRODUCTIONS.create(name).trials(Path("out"), budget)


every_reproduction = pytest.mark.parametrize("name", list(REPRODUCTIONS))


@every_reproduction
def test_it_is_described(name: str) -> None:
    reproduction = REPRODUCTIONS.create(name)
    assert reproduction.name == name
    assert reproduction.summary
    assert callable(reproduction.draw)
    assert set(reproduction.budgets) <= set(BUDGETS)
    assert all(claim.text and claim.published for claim in reproduction.claims)


@every_reproduction
@pytest.mark.parametrize("budget", BUDGETS)
def test_every_budget_is_laid_out(name: str, budget: str) -> None:
    """Recipes that it names are read and checked here."""
    reproduction = REPRODUCTIONS.create(name)
    trials = laid_out(name, budget)
    if not reproduction.variants:
        assert not trials
        assert "no training" in reproduction.cost(budget)
        return
    assert trials
    assert len({trial.path for _, trial in trials}) == len(trials)
    assert sorted({trial.recipe.seed for _, trial in trials}) == reproduction.seeds(budget)
    assert f"{len(trials)} × " in reproduction.cost(budget)


@every_reproduction
def test_the_smoke_budget_is_a_twentieth_of_the_whole_at_most(name: str) -> None:
    smoke, full = (
        sum(trial.recipe.train.epochs for _, trial in laid_out(name, budget)) for budget in ("smoke", "full")
    )
    assert smoke <= full / 20


@every_reproduction
def test_a_budget_that_it_does_not_have_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="no budget 'huge'"):
        REPRODUCTIONS.create(name).trials(Path("out"), "huge")
