"""GloRo on CIFAR-10 with a logarithmic ε: the cpu budget of this variant of fig-epsilon, two seeds.

What is finished in runs/gloro-schedule-images is kept. Writes results/gloro-schedule-images.json.
"""

from __future__ import annotations

import os
from pathlib import Path

from lipcert.paper import REPRODUCTIONS
from lipcert.paper.parameter_figures import LOGARITHMIC
from lipcert.runs.measures import K_HF, clean, cra
from lipcert.runs.rows import row_of
from lipcert.sweeps import LocalCrew, Trial, complete
from results import write_table

EPSILONS = (0.15, 0.5)


def trials(eps: float) -> list[Trial]:
    folder = Path("runs/gloro-schedule-images")
    laid_out = REPRODUCTIONS.create("fig-epsilon").trials(folder, "cpu", settings=["certify.tightness=null"])
    return [trial for variant, trial in laid_out if (variant.series, variant.x) == (LOGARITHMIC, eps)]


def row(eps: float) -> list[str]:
    """The seeds side by side."""
    found = [row_of(trial.run) for trial in trials(eps)]
    measures = (clean("test"), cra("test", eps), K_HF)
    return [f"{eps:g}", *(" and ".join(map(m.kind.text, m.numbers(found))) for m in measures)]


def main() -> None:
    complete([trial for eps in EPSILONS for trial in trials(eps)], LocalCrew())
    titles = ["ε", "clean", "CRA at ε", "K_hf"]
    note = "4C3F at a quarter of the width, 12 epochs, seeds 1 and 2, test split, proved bounds, percent"
    write_table("gloro-schedule-images", note, titles, [row(eps) for eps in EPSILONS])


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
