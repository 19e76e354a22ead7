"""Captions that carry meaning: budget, seeds and splits are those of the trainings."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from lipcert.paper import REPRODUCTIONS, loss_layer_grid, parameter_figures, pareto
from lipcert.paper.definition import Trained
from lipcert.paper.outcome import Outcome
from lipcert.paper.printed_measures import CLEAN
from lipcert.paper.results import Results
from lipcert.report.run_table import run_table
from lipcert.sweeps.findings import SweepRow
from lipcert.sweeps.summary import over_seeds, summary_table
from tests.outcomes import outcome

RESULTS = Path(__file__).parents[2] / "results"


def trained(name: str, settings: tuple[str, ...] = (), seeds: tuple[int, ...] | None = None) -> Trained:
    """The trainings of a reproduction on a CPU, without their outcomes."""
    return Trained(REPRODUCTIONS.create(name).trials(Path("out"), "cpu", seeds, settings), [])


@pytest.mark.parametrize(("width", "epochs", "seeds"), [(0.25, 6, (1, 2)), (0.5, 9, (1, 2, 3))])
def test_a_figure_names_width_epochs_and_seeds(width: float, epochs: int, seeds: tuple[int, ...]) -> None:
    found = trained("fig-slack", (f"model.width={width}", f"train.epochs={epochs}"), seeds)
    said = f"4C3F, width {width:g}, {epochs} epochs, test split, proved bounds; "
    assert parameter_figures.caption(found) == f"{said}bars: least and most of {len(seeds)} seeds"
    assert all(measure.title.startswith("test ") for measure in (CLEAN, parameter_figures.CRA))


@pytest.mark.parametrize(
    ("name", "module"), [("fig-slack", parameter_figures), ("grid", loss_layer_grid), ("pareto", pareto)]
)
def test_one_seed_and_one_epoch_are_no_plurals(name: str, module: ModuleType) -> None:
    said = module.caption(trained(name, ("train.epochs=1",), (3,)))
    assert "; one seed" in said
    assert "1 epoch, " in said
    assert not re.search(r"\b1 (seeds|epochs)\b", said)


def test_the_figure_of_convergence_names_the_split_of_its_estimates() -> None:
    said = parameter_figures.caption(trained("fig-convergence"), "validation split, estimated bounds")
    assert said.startswith("4C3F, width 0.25, 20 epochs, validation split, estimated bounds")


def test_the_grid_names_what_it_was_trained_with() -> None:
    few = ("model.width=0.5", "train.epochs=2")
    said = loss_layer_grid.caption(trained("grid", few, (4, 5, 6)))
    assert said == "4C3F's shape, width 0.5, 2 epochs, test split, proved bounds; mean of 3 seeds"


def test_the_fronts_name_the_optimiser_and_the_settings_that_stay() -> None:
    found = trained("pareto")
    said = pareto.caption(found)
    recipe = found.trials[0][1].recipe
    assert f"width 0.5, {recipe.train.epochs} epochs, {recipe.optimizer.name}, test split" in said
    assert "; up to 2 seeds; " in said
    fixed = {
        (
            variant.series,
            trial.recipe.loss.arguments["eps" if variant.series == pareto.OVER_SLACK else "slack"],
        )
        for variant, trial in found.trials
        if variant.series != pareto.RIVAL
    }
    eps, slack = re.search(r"CLL with p at ε ([\d.]+), with ε at p ([\d.]+)", said).groups()  # type: ignore[union-attr]
    assert fixed == {(pareto.OVER_SLACK, float(eps)), (pareto.OVER_EPS, float(slack))}


@pytest.mark.parametrize("name", ["fig-slack", "fig-epsilon", "fig-lambda", "fig-temperature", "grid"])
def test_what_is_laid_out_today_is_what_the_results_hold(name: str) -> None:
    results, laid_out = Results.read(RESULTS / f"{name}.json"), trained(name)
    if REPRODUCTIONS.create(name).older(results.date):
        pytest.skip("recorded before the definition changed, as the documents say")
    assert [(v.series, v.x, t.recipe.seed) for v, t in laid_out.trials] == [
        (o.series, o.x, o.run.seed) for o in results.outcomes
    ]
    assert max(results.epochs) == max(t.recipe.train.epochs for _, t in laid_out.trials)
    assert set(results.seeds) == {o.run.seed for o in results.outcomes}


def swept(**numbers: float) -> list[Outcome]:
    return [outcome(seed=seed, **numbers) for seed in (1, 2)]  # type: ignore[arg-type]


def test_the_table_of_runs_names_split_and_samples() -> None:
    table = run_table([one.run for one in swept()])
    assert [title for title in table.titles if "test" in title] == ["clean test", "CRA test (100)"]
    assert table.cells[0][table.titles.index("CRA test (100)")] == "50.00"


def test_a_summary_that_cannot_choose_says_nothing_of_the_best() -> None:
    rows = [SweepRow({"seed": str(o.run.seed)}, Path("run"), o.run) for o in swept()]
    table = summary_table(over_seeds(rows))
    assert table.note == ""
    assert [table.emphasis(row) for row in table.rows] == [""]
    assert table.cells[0][table.titles.index("trainings")] == "2"
