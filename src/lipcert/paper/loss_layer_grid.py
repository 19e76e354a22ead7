"""The grid of every loss on every family of layers, in one network, which no paper has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from lipcert.models.uniform import FAMILIES
from lipcert.paper.definition import Reduction, Reproduction, Trained, Variant
from lipcert.report.comparison import write_comparison
from lipcert.report.heatmap import heatmaps
from lipcert.runs.rows import Row

RECIPE = "cifar10-grid"
CLEAN, CRA = "test clean", "test CRA 36/255"

# ε grows over the first half, as in its authors' code.
_GROWING = "schedule.loss.eps={name: ramp, first: 0.0333, until: 0.5}"
# The margin is a distance only if every logit has the constant 1.
_NORMALISED = "model.head=lln"

# Each loss as in its own recipes, in short trainings: ε = 0.15 or its paper's, and the head it was made for.
# CLL also with EMMA's ε, as a short training certifies more with a wide logistic; a growing one
# costs CLL six points and more on layers with the constant 1 (docs/results.md).
LOSSES: dict[str, tuple[str, ...]] = {
    "cll": ("loss={name: cll, eps: 0.15, slack: 0.25, lam: 1.0e-4, detach_constant: false}",),
    "cll-wide": ("loss={name: cll, eps: 0.4235, slack: 0.25, lam: 1.0e-4, detach_constant: false}",),
    "gloro": ("loss={name: gloro, eps: 0.15}",),
    "gloro-trades": ("loss={name: gloro-trades, eps: 0.15, mu: 2.0}",),
    "lmt": ("loss={name: lmt, eps: 0.15}",),
    "emma": ("loss={name: emma, eps: 0.4235}", _GROWING),
    "emma-annealing": ("loss={name: emma-annealing, eps: 0.4235}", _GROWING),
    "logit-annealing": ("loss={name: logit-annealing}", _NORMALISED),
    "certificate-regularisation": (
        "loss={name: certificate-regularisation, gamma: 0.3}",
        _NORMALISED,
    ),
    "aol": ("loss={name: aol}", _NORMALISED),
    "multi-margin": ("loss={name: multi-margin}", _NORMALISED),
    "hkr": ("loss={name: hkr, alpha: 0.98, margin: 0.5}", _NORMALISED),
    "cross-entropy": ("loss={name: cross-entropy}",),
}

# SOC's cells take longest; this setting saves a tenth.
_FAMILIES = {"soc": ("train.channels_last=true",)}


def _cells(losses: Sequence[str], families: Sequence[str]) -> tuple[Variant, ...]:
    return tuple(
        Variant(
            RECIPE,
            (f"model.layer={family}", *LOSSES[loss], *_FAMILIES.get(family, ())),
            series=f"{family} {loss}",
        )
        for family in families
        for loss in losses
    )


def _place(row: Row) -> tuple[str, str]:
    """Return loss and family."""
    family, loss = row["series"].split(" ")
    return loss, family


def _mean(rows: Sequence[Row], column: str) -> dict[tuple[str, str], float]:
    places = dict.fromkeys(map(_place, rows))
    return {place: fmean(row[column] for row in rows if _place(row) == place) for place in places}


def _draw(trained: Trained, base: Path) -> list[Path]:
    rows = trained.rows
    losses, families = _axes(rows)
    panels = {"CRA at 36/255 [%]": _mean(rows, CRA), "clean accuracy [%]": _mean(rows, CLEAN)}
    recipe, seeds = trained.trials[0][1].recipe, {trial.recipe.seed for _, trial in trained.trials}
    width = recipe.model.arguments.get("width", 1.0)
    note = (
        f"4C3F's shape, width {width:g}, epochs: {recipe.train.epochs}, test split, proved bounds; "
        f"mean of {len(seeds)} seeds"
    )
    table = write_comparison(*grid_cells(rows, CRA), base)
    return [*heatmaps(panels, losses, families, note, base), *table]


def _axes(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Return the losses and families that occur, each in its order."""
    places = {_place(row) for row in rows}
    losses = [loss for loss in LOSSES if any(place[0] == loss for place in places)]
    return losses, [family for family in FAMILIES if any(place[1] == family for place in places)]


def grid_cells(rows: Sequence[Row], column: str) -> tuple[list[str], list[list[str]]]:
    """Return titles, and one line per loss: the mean of a cell with the range of its seeds, in percent."""
    losses, families = _axes(rows)

    def cell(loss: str, family: str) -> str:
        found = sorted(100 * row[column] for row in rows if _place(row) == (loss, family))
        if not found:
            return "–"
        return f"{fmean(found):.1f}" + (f" ({found[0]:.1f} … {found[-1]:.1f})" if len(found) > 1 else "")

    cells = [[loss, *(cell(loss, family) for family in families)] for loss in losses]
    return [column.removeprefix("test "), *families], cells


GRID = Reproduction(
    "grid",
    "Every loss on every family of layers, thin networks: CRA at 36/255 and clean accuracy",
    _cells(tuple(LOSSES), tuple(FAMILIES)),
    _draw,
    {
        "cpu": Reduction(("train.threads=1",), seeds=(1, 2), cost="86 min on 2 cores"),
        "smoke": Reduction(variants=_cells(("cll", "emma"), ("plain", "bro"))),
    },
    shown=("certify.splits", "certify.radii"),
)

REPRODUCTIONS = (GRID,)
