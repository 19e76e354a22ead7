"""The paper's row of 4C3F on a CPU: CLL with Muon in 22, 45 and 90 epochs, certified on all test images.

`python benchmarks/paper_row.py [EPOCHS ...]` trains `cifar10-4c3f-long` in bfloat16, one thread each, two at
a time; the longest training has two seeds, the shorter ones show what more time buys. What is finished is
kept, what was interrupted goes on. Certificates are those of the float32 weights, with the exact prover.
Writes what is finished to results/paper-row.json.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lipcert.recipes import read_recipe
from lipcert.runs import Run
from lipcert.sweeps import LocalCrew, Trial, complete
from results import write_table

RECIPE = "cifar10-4c3f-long"
SETTINGS = ("train.threads=1", "train.precision=bf16-mixed")
# Epochs and seeds.
TRAININGS = ((90, 1), (90, 2), (45, 1), (22, 1))
TITLES = [
    "epochs",
    "seed",
    "clean",
    "CRA 36/255",
    "72/255",
    "108/255",
    "255/255",
    "K_f",
    "tightness",
    "seconds",
]


def trial(epochs: int, seed: int) -> Trial:
    settings = [*SETTINGS, f"train.epochs={epochs}", f"seed={seed}"]
    return Trial(Path("runs/paper-row") / f"{epochs}-seed{seed}", read_recipe(RECIPE, None, settings))


def row(run: Run) -> list[str]:
    """Return the numbers of a finished training."""
    statement = run.statement()
    accuracies = [f"{100 * each.value:.1f}" for each in statement.splits["test"].rows]
    tightness = run.tightness()
    assert tightness is not None
    return [
        *accuracies,
        f"{statement.k_f:.1f}",
        f"{100 * tightness.tightness:.0f}",
        f"{statement.seconds:.0f}",
    ]


def main(*lengths: str) -> None:
    trials = {key: trial(*key) for key in TRAININGS}
    chosen = [one for (epochs, _), one in trials.items() if not lengths or str(epochs) in lengths]
    complete(chosen, LocalCrew())
    finished = {key: one.run for key, one in trials.items() if one.is_finished()}
    table = [[str(epochs), str(seed), *row(run)] for (epochs, seed), run in finished.items()]
    for cells in table:
        print(*cells, sep="  ")
    note = (
        "4C3F (2,466,858 parameters), CLL with slack 0.15 and Muon, batches of 128, one thread, bfloat16; "
        "10,000 test images, exact proofs, percent"
    )
    write_table("paper-row", note, TITLES, table)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(*sys.argv[1:])
