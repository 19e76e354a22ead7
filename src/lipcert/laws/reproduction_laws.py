"""The laws of every reproduction of a figure or table."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lipcert.errors import InputError
from lipcert.laws.law import BrokenLawError, expect, laws_of_registry
from lipcert.paper import REPRODUCTIONS
from lipcert.paper.definition import BUDGETS, Reproduction, Variant
from lipcert.sweeps import Trial
from lipcert.types import BudgetName

REPRODUCTION_LAWS = laws_of_registry("reproductions", REPRODUCTIONS, REPRODUCTIONS.create)


@cache
def _laid_out(name: str, budget: BudgetName) -> list[tuple[Variant, Trial]]:
    """Return every training; each recipe is read once, which takes long."""
    return REPRODUCTIONS.create(name).trials(Path("out"), budget)


@REPRODUCTION_LAWS.add()
def it_is_described(reproduction: Reproduction) -> None:
    """Check what lists and pages show of it."""
    expect(bool(reproduction.summary), "expected a summary, found none")
    expect(callable(reproduction.draw), "expected a function that draws")
    others = set(reproduction.budgets) - set(BUDGETS)
    expect(not others, f"budgets: expected some of {', '.join(BUDGETS)}, found {', '.join(sorted(others))}")
    said = all(claim.text and claim.published for claim in reproduction.claims)
    expect(said, "claims: expected a text and what the paper prints")


@REPRODUCTION_LAWS.add()
def every_budget_is_laid_out(reproduction: Reproduction) -> None:
    """Read and check the recipes that it names."""
    for budget in BUDGETS:
        trials, cost = _laid_out(reproduction.name, budget), reproduction.cost(budget)
        if not reproduction.variants:
            expect(not trials and "no training" in cost, f"{budget}: trainings without variants")
            continue
        expect(bool(trials), f"{budget}: expected trainings, found none")
        places = {trial.path for _, trial in trials}
        expect(len(places) == len(trials), f"{budget}: two trainings would write to one place")
        seeds = sorted({trial.recipe.seed for _, trial in trials})
        expect(seeds == reproduction.seeds(budget), f"{budget}: expected other seeds than {seeds}")
        expect(f"{len(trials)} × " in cost, f"{budget}: the cost does not name {len(trials)} trainings")


@REPRODUCTION_LAWS.add()
def the_smoke_budget_is_a_twentieth_of_the_whole_at_most(reproduction: Reproduction) -> None:
    """Compare the epochs of all trainings together."""
    smoke, full = _epochs(reproduction, "smoke"), _epochs(reproduction, "full")
    expect(smoke <= full / 20, f"the smoke budget has {smoke} epochs, the full one {full}")


def _epochs(reproduction: Reproduction, budget: BudgetName) -> int:
    return sum(trial.recipe.train.epochs for _, trial in _laid_out(reproduction.name, budget))


@REPRODUCTION_LAWS.add()
def a_budget_that_it_does_not_have_is_refused(reproduction: Reproduction) -> None:
    """Check that the line names the budget."""
    try:
        reproduction.trials(Path("out"), "huge")  # type: ignore[arg-type]
    except InputError as error:
        expect("no budget 'huge'" in str(error), f"expected the error to name the budget, found {error}")
        return
    raise BrokenLawError("expected the budget 'huge' to be refused")
