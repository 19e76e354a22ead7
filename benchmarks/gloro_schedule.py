"""Train GloRo on two moons with a logarithmic ε, a variant: the authors of CLL ran a fixed ε there.

Five seeds, 1000 epochs, proved bounds; what is finished in runs/gloro-schedule is kept. Writes
results/gloro-schedule.json.
"""

from __future__ import annotations

import os
from pathlib import Path

from lipcert.recipes import read_recipe
from lipcert.runs.measures import K_HF, clean, cra
from lipcert.runs.rows import row_of
from lipcert.sweeps import LocalCrew, Trial, complete
from results import write_table

RECIPES = ("moons-gloro", "moons-gloro-0.4", "moons-gloro-0.5")
GROWING = "schedule.loss.eps={name: logarithmic}"
SEEDS = (1, 2, 3, 4, 5)


def trials(recipe: str) -> list[Trial]:
    folder = Path("runs/gloro-schedule") / f"{recipe}-log"
    return [
        Trial(folder / f"seed={seed}", read_recipe(recipe, None, [GROWING, f"seed={seed}"])) for seed in SEEDS
    ]


def row(recipe: str) -> list[str]:
    """Mean ± standard deviation at the ε of training."""
    found = [row_of(trial.run) for trial in trials(recipe)]
    eps = read_recipe(recipe).certify.radii[0]
    measures = (clean("train"), cra("train", eps), cra("val", eps), K_HF)
    return [recipe, f"{eps:g}", *(m.kind.text(m.deviation(found)) for m in measures)]


def main() -> None:
    complete([trial for recipe in RECIPES for trial in trials(recipe)], LocalCrew())
    titles = ["recipe", "ε", "clean", "CRA train (2,000)", "CRA val (20,000)", "K_hf"]
    note = "logarithmic ε schedule, 1000 epochs, 5 seeds, mean ± standard deviation, proved bounds, percent"
    write_table("gloro-schedule", note, titles, [row(recipe) for recipe in RECIPES])


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
