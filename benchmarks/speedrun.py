"""Certified accuracy against epochs and seconds: 4C3F on real CIFAR-10, validation split, proved bounds.

`python benchmarks/speedrun.py` trains rows at full width: CLL and GloRo with the optimiser and settings of
the fast recipe in 6, 12 and 24 epochs, and CLL with Adam for as many seconds. What is finished is kept, what
was interrupted goes on; a row that stands in results/speedrun.json is not trained again. Seconds are those of
one thread, two trainings at a time. Writes results/speedrun.json.
"""

from __future__ import annotations

import os
from pathlib import Path

from lipcert.environment import environment
from lipcert.recipes import read_recipe
from lipcert.runs import Run
from lipcert.sweeps import LocalCrew, Trial, complete
from results import read_table, write_table

FAST = "cifar10-4c3f-fast"
PROVED = ("certify.splits=[val]", "certify.effort=fast", "certify.tightness=null", "train.threads=1")

# What the fast recipe had before Muon.
ADAM = (
    "optimizer={name: adam, lr: 4e-3}",
    "schedule.optimizer.lr={name: one-cycle}",
    "loss.lam=1e-4",
)
KINDS: dict[str, tuple[str, ...]] = {
    "CLL, Muon": (),
    "GloRo, Muon": ("loss={name: gloro, eps: 0.15}",),
    "CLL, Adam": ADAM,
}
OURS, RIVAL, BEFORE = KINDS

# (kind, epochs, seed) in pairs that end at about the same time, those that decide first. Muon's epochs take
# 1.3 times as long as Adam's (benchmarks/optimizer.py), which gets as many more of them.
PAIRS: list[list[tuple[str, int, int]]] = [
    [(OURS, 12, 1), (RIVAL, 12, 1)],
    [(OURS, 6, 1), (RIVAL, 6, 1)],
    [(OURS, 24, 1), (RIVAL, 24, 1)],
    [(OURS, 12, 2), (RIVAL, 12, 2)],
    [(OURS, 24, 2), (RIVAL, 24, 2)],
    [(BEFORE, 16, 1), (BEFORE, 8, 1)],
    [(BEFORE, 31, 1)],
]
TITLES = [
    "training",
    "epochs",
    "seed",
    "seconds",
    "clean",
    "CRA 36/255",
    "72/255",
    "108/255",
    "K_f",
    "commit",
]


def trial(path: Path, recipe: str, budget: str | None, *settings: str) -> Trial:
    return Trial(path, read_recipe(recipe, budget, [*PROVED, *settings]))


def found(run: Run) -> list[str]:
    """Clean, CRA at 36, 72, 108/255, K_f."""
    statement = run.statement()
    values = [row.value for row in statement.splits["val"].rows[:4]]
    return [*(f"{100 * value:.1f}" for value in values), f"{statement.k_f:.1f}"]


def row_trial(kind: str, epochs: int, seed: int) -> Trial:
    path = Path("runs/speedrun") / f"{kind.replace(', ', '-')}-{epochs}-seed{seed}"
    return trial(path, FAST, None, *KINDS[kind], f"train.epochs={epochs}", f"seed={seed}")


def rows() -> None:
    """A pair at a time, written as it ends."""
    table = {tuple(row[:3]): row for row in read_table("speedrun")}
    for pair in PAIRS:
        trials = {
            (kind, str(n), str(seed)): row_trial(kind, n, seed)
            for kind, n, seed in pair
            if (kind, str(n), str(seed)) not in table
        }
        complete(list(trials.values()), LocalCrew())
        commit = str(environment().commit)
        table |= {key: [*key, seconds(one.run), *found(one.run), commit] for key, one in trials.items()}
        cells = sorted(table.values(), key=lambda row: (row[0], int(row[1]), row[2]))
        write_table("speedrun", "4C3F, validation split, proved bounds, percent", TITLES, cells)
    for row in cells:
        print(*row, sep="  ")


def seconds(run: Run) -> str:
    """Of training, by the clock."""
    return f"{run.statement().seconds:.0f}"


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    rows()
