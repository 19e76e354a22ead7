"""Why short trainings mind a small λ where the paper's do not: more epochs, K attached, a larger start.

The cpu budget of `lipcert reproduce fig-lambda` (4C3F at a quarter of the width, K detached, six epochs), one
thing changed at a time. What is finished in runs/lambda-range is kept. Writes results/lambda-range.json.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from lipcert.paper import REPRODUCTIONS
from lipcert.runs.measures import cra
from lipcert.runs.rows import row_of
from lipcert.sweeps import LocalCrew, Trial, complete
from lipcert.tables.kinds import PERCENT
from results import write_table

LAMBDAS = (1e-10, 1e-6, 1e-4)
# Settings and seeds.
CHANGES: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "as it is, 6 epochs": ((), (1, 2)),
    "K attached, 6 epochs": (("loss.detach_constant=false",), (1, 2)),
    "gain √2 at the start, 6 epochs": ((f"model.gain={math.sqrt(2)}",), (1, 2)),
    "24 epochs": (("train.epochs=24",), (1,)),
}


def trials(change: str, lam: float) -> list[Trial]:
    settings, seeds = CHANGES[change]
    folder = Path("runs/lambda-range") / str(list(CHANGES).index(change))
    laid_out = REPRODUCTIONS.create("fig-lambda").trials(folder, "cpu", seeds, settings)
    return [trial for variant, trial in laid_out if variant.x == lam]


def row(change: str) -> list[str]:
    """CRA at 36/255 and K_f at every λ, those of the seeds side by side."""
    cells = [change]
    for lam in LAMBDAS:
        found = [row_of(trial.run) for trial in trials(change, lam)]
        cells.append(" and ".join(map(PERCENT.text, cra("test", 36 / 255).numbers(found))))
        cells.append(" and ".join(f"{one.k_f:.3g}" for one in found))
    return cells


def main() -> None:
    complete([trial for change in CHANGES for lam in LAMBDAS for trial in trials(change, lam)], LocalCrew())
    titles = ["change", *(title for lam in LAMBDAS for title in (f"CRA at λ = {lam:g}", "K_f"))]
    note = "4C3F at a quarter of the width, test split, CRA at 36/255 with proved bounds, percent"
    write_table("lambda-range", note, titles, [row(change) for change in CHANGES])


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
