"""Draw the figures of reproductions once more from results/*.json, without training anything.

Boundaries on two moons need the networks themselves: `lipcert reproduce NAME` trains and draws those.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from lipcert.paper import REPRODUCTIONS
from lipcert.paper.definition import Trained
from lipcert.paper.results import Results
from lipcert.recipes.budgets import remark
from lipcert.report.figure import labelled

ROOT = Path(__file__).parents[1]

# What needs numbers alone.
DRAWN = (
    "fig-calibration",
    "fig-slack",
    "fig-epsilon",
    "fig-lambda",
    "fig-offset",
    "fig-temperature",
    "fig-convergence",
    "grid",
    "pareto",
)


def draw(names: tuple[str, ...] = DRAWN) -> Iterator[tuple[str, bytes]]:
    """Yield the name of each figure and its content as PNG."""
    for name in names:
        with tempfile.TemporaryDirectory() as place:
            written = _draw(name, Path(place))
            (picture,) = [path for path in written if path.suffix == ".png"]
            yield name, picture.read_bytes()


def _draw(name: str, place: Path) -> list[Path]:
    reproduction = REPRODUCTIONS.create(name)
    if not reproduction.variants:
        return reproduction.draw(Trained((), ()), place / name)
    results = Results.read(ROOT / "results" / f"{name}.json")
    there = {(outcome.series, outcome.x, outcome.run.seed) for outcome in results.outcomes}
    trials = [
        (variant, trial)
        for variant, trial in reproduction.trials(place, results.budget)
        if (variant.series, variant.x, trial.recipe.seed) in there
    ]
    with labelled(remark(results.budget)):
        return reproduction.draw(Trained(trials, results.outcomes), place / name)
