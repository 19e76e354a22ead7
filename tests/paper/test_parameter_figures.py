"""How GloRo's ε is scheduled: as the authors ran it in each figure, with other schedules beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lipcert.paper import REPRODUCTIONS
from lipcert.paper.parameter_figures import FIXED, GROWING, LOGARITHMIC
from lipcert.recipes.schema import Recipe

FULL = [0.15, 0.25, 0.5, 0.75, 1.0, 1.25]


def recipes(name: str, series: str, budget: str) -> dict[float, Recipe]:
    """The recipes of one series by x, seed 1."""
    found = REPRODUCTIONS.create(name).trials(Path("out"), budget, seeds=[1])
    return {variant.x or 0.0: trial.recipe for variant, trial in found if variant.series == series}


@pytest.mark.parametrize("budget", ["full", "cpu", "smoke"])
def test_the_sweep_of_eps_grows_from_nothing_by_a_polynomial(budget: str) -> None:
    found = recipes("fig-epsilon", "GloRo", budget)
    assert sorted(found) == {"full": FULL, "cpu": [0.15, 0.5, 1.25], "smoke": [0.15, 1.25]}[budget]
    for eps, recipe in found.items():
        schedule = recipe.make_schedules()["loss.eps"]
        start = recipe.loss.arguments["eps"]
        for t in (0.0, 0.2, 0.5, 1.0):
            assert schedule(start, t) == pytest.approx(eps * (1 - (1 - t) ** 5), abs=1e-8)
        assert schedule(start, 1.0) == eps  # to the last bit, or the certificate would be at another radius
        assert recipe.certify.radii == (eps,)
        assert recipe.final_loss().eps == eps  # type: ignore[attr-defined]


def test_other_schedules_stand_beside_it_at_few_eps() -> None:
    found = recipes("fig-epsilon", LOGARITHMIC, "full")
    assert sorted(found) == [0.15, 0.5]
    assert sorted(recipes("fig-epsilon", LOGARITHMIC, "cpu")) == [0.15]
    assert {recipe.schedule["loss.eps"].name for recipe in found.values()} == {"logarithmic"}
    assert recipes("fig-epsilon", LOGARITHMIC, "smoke") == {}


@pytest.mark.parametrize("budget", ["full", "cpu", "smoke"])
def test_the_main_row_of_convergence_has_a_fixed_eps(budget: str) -> None:
    (fixed,) = recipes("fig-convergence", FIXED, budget).values()
    assert "loss.eps" not in fixed.schedule
    growing = recipes("fig-convergence", GROWING, budget).values()
    assert [recipe.schedule["loss.eps"].name for recipe in growing] == ["logarithmic"] * (budget != "smoke")


def test_on_two_moons_eps_is_fixed() -> None:
    for name in ("moons-gloro-0.2", "moons-gloro", "moons-gloro-0.4", "moons-gloro-0.5"):
        trials = REPRODUCTIONS.create("moons").trials(Path("out"), None)
        (recipe,) = [trial.recipe for variant, trial in trials if variant.recipe == name]
        assert recipe.schedule.keys() == {"optimizer.lr"}
