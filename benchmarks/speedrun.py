"""Certified accuracy against epochs: 4C3F on real CIFAR-10, CRA at 36/255 on the validation split.

`python benchmarks/speedrun.py search` tries changes to the fast recipe at half width and six epochs.
`python benchmarks/speedrun.py` runs the rows at full width, N = 6, 12, 24: the paper's schedule shrunk to N
epochs, GloRo with the settings of the fast recipe, and the fast recipe. What is finished is kept, what was
interrupted goes on; a row that stands in results/speedrun.json is not trained again. Bounds are proved.
Writes results/speedrun-search.json and results/speedrun.json.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from lipcert.recipes import read_recipe
from lipcert.sweeps import LocalCrew, Trial, complete
from lipcert.train.rundir import RunDirectory
from results import read_table, write_table

FAST, PAPER, GLORO = "cifar10-4c3f-fast", "cifar10-4c3f-cll", "cifar10-4c3f-gloro"
PROVED = ("certify.splits=[val]", "certify.effort=fast", "certify.tightness=null", "train.threads=1")
HALF = ("model.width=0.5", "train.epochs=6")

CHANGES: dict[str, tuple[str, ...]] = {
    "as it is": (),
    "learning rate 2e-3": ("optimizer.lr=2e-3",),
    "learning rate 8e-3": ("optimizer.lr=8e-3",),
    "batch 64": ("train.batch_size=64",),
    "batch 64, learning rate 3e-3": ("train.batch_size=64", "optimizer.lr=3e-3"),
    "averaged weights, 0.998": ("train.ema=0.998",),
    "peak at 0.15": ("schedule.optimizer.lr={name: one-cycle, peak: 0.15}",),
    "slack 0.3": ("loss.slack=0.3",),
    "ε 0.2": ("loss.eps=0.2",),
    "ε ramp": ("schedule.loss.eps={name: ramp, first: 0.2, until: 0.5}",),
    "λ 1e-3": ("loss.lam=1e-3",),
    "gain 0.7": ("model.gain=0.7",),
    "gain 0.9": ("model.gain=0.9",),
    "crop 2": ("train.augment={crop: 2, flip: true, jitter: 0.0, rotate: 0.0}",),
    "8 products": ("train.iterations=8",),
}

# Name: recipe and budget.
KINDS: dict[str, tuple[str, str | None]] = {
    "CLL, the paper's schedule": (PAPER, None),
    "GloRo, the fast recipe's settings": (GLORO, "cpu"),
    "CLL, cifar10-4c3f-fast": (FAST, None),
}
OLD, RIVAL, OURS = KINDS

# (kind, epochs, seed) in pairs that end at about the same time, those that decide first.
PAIRS: list[list[tuple[str, int, int]]] = [
    [(OURS, 12, 1), (RIVAL, 12, 1)],
    [(OLD, 24, 1), (OLD, 24, 2)],
    [(OURS, 12, 2), (RIVAL, 12, 2)],
    [(OURS, 6, 1), (RIVAL, 6, 1)],
    [(OLD, 6, 1), (OLD, 12, 1)],
    [(OURS, 24, 1), (RIVAL, 24, 1)],
]


def trial(path: Path, recipe: str, budget: str | None, *settings: str) -> Trial:
    return Trial(path, read_recipe(recipe, budget, [*PROVED, *settings]))


def found(run: RunDirectory) -> list[str]:
    """Clean, CRA at 36, 72, 108/255, K_f."""
    certificate = json.loads(run.certificate.read_text())
    split = certificate["splits"]["val"]
    values = [split["clean"]["value"], *(entry["value"] for entry in split["certified"][:3])]
    return [*(f"{100 * value:.1f}" for value in values), f"{certificate['k_f']:.1f}"]


def search(names: Sequence[str]) -> None:
    """One change at a time."""
    folder = Path("runs/speedrun-search")
    trials = {
        name: trial(folder / name.replace(" ", "-"), FAST, None, *HALF, *CHANGES[name], "seed=1")
        for name in names
    }
    complete(list(trials.values()), LocalCrew())
    table = [[name, *found(one.run)] for name, one in trials.items()]
    for row in table:
        print(*row, sep="  ")
    note = "4C3F at half width, 6 epochs, seed 1, validation split, proved bounds, percent"
    titles = ["change to cifar10-4c3f-fast", "clean", "CRA 36/255", "72/255", "108/255", "K_f"]
    write_table("speedrun-search", note, titles, table)


def row_trial(kind: str, epochs: int, seed: int) -> Trial:
    recipe, budget = KINDS[kind]
    path = Path("runs/speedrun") / f"{recipe}{'-cpu' if budget else ''}-{epochs}-seed{seed}"
    return trial(path, recipe, budget, f"train.epochs={epochs}", f"seed={seed}")


def rows() -> None:
    """A pair at a time, written as it ends."""
    table = {(kind, int(n), int(seed)): values for kind, n, seed, *values in read_table("speedrun")}
    for pair in PAIRS:
        trials = {key: row_trial(*key) for key in pair if key not in table}
        complete(list(trials.values()), LocalCrew())
        table |= {key: found(one.run) for key, one in trials.items()}
        cells = [[kind, str(n), str(seed), *values] for (kind, n, seed), values in sorted(table.items())]
        titles = ["training", "epochs", "seed", "clean", "CRA 36/255", "72/255", "108/255", "K_f"]
        write_table("speedrun", "4C3F, validation split, proved bounds, percent", titles, cells)
    for row in cells:
        print(*row, sep="  ")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    search(list(CHANGES)) if sys.argv[1:] == ["search"] else rows()
