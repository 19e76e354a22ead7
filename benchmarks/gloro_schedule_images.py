"""GloRo on CIFAR-10 with the ε schedule of its authors: the cpu budget of fig-epsilon at two ε, two seeds.

What is finished in runs/gloro-schedule-images is kept. Writes results/gloro-schedule-images.json.
"""

from __future__ import annotations

import os
from pathlib import Path

from gloro_schedule import GROWING

from lipcert.paper import REPRODUCTIONS
from lipcert.runs.rows import findings_of, fraction
from lipcert.sweeps import LocalCrew, Trial, complete
from results import write_table

EPSILONS = (0.15, 0.5)


def trials(eps: float) -> list[Trial]:
    folder = Path("runs/gloro-schedule-images")
    laid_out = REPRODUCTIONS.create("fig-epsilon").trials(
        folder, "cpu", settings=[GROWING, "certify.tightness=null"]
    )
    return [trial for variant, trial in laid_out if (variant.series, variant.x) == ("GloRo", eps)]


def row(eps: float) -> list[str]:
    """The seeds side by side."""
    found = [findings_of(trial.run) for trial in trials(eps)]
    accuracies = [[100 * one[key] for one in found] for key in ("test clean", f"test CRA {fraction(eps)}")]
    return [f"{eps:g}", *(_both(values) for values in accuracies), _both([one["K_hf"] for one in found])]


def _both(values: list[float]) -> str:
    return " and ".join(f"{value:.1f}" for value in values)


def main() -> None:
    complete([trial for eps in EPSILONS for trial in trials(eps)], LocalCrew())
    titles = ["ε", "clean", "CRA at ε", "K_hf"]
    note = "4C3F at a quarter of the width, 12 epochs, seeds 1 and 2, test split, proved bounds, percent"
    write_table("gloro-schedule-images", note, titles, [row(eps) for eps in EPSILONS])


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
