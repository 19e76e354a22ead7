"""Why CLL trailed GloRo in short trainings: one thing changed at a time, at half width and four epochs.

Real CIFAR-10, validation split only, proved bounds, two seeds; about 70 minutes on two cores, and what is
finished is kept. Writes results/cll-and-gloro.json.
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path

from lipcert.recipes import read_recipe
from lipcert.runs import Run
from lipcert.sweeps import LocalCrew, Trial, complete
from results import write_table

SEEDS = (1, 2)
REDUCED = (
    "model.width=0.5",
    "train.epochs=4",
    "train.threads=1",
    "certify.splits=[val]",
    "certify.effort=fast",
    "certify.tightness=null",
)
CLL, GLORO = "cifar10-4c3f-cll", "cifar10-4c3f-gloro"

# What the cpu budget changed, undone one by one: the first lines are how it began.
UNDONE = {
    "5 products a step": "train.iterations=1",
    "gain 0.8": "model.gain=1.4142135623730951",
    "centred inputs": "model.normalise=null",
    "no crop": "train.augment={crop: 4, flip: true, jitter: 0.0, rotate: 0.0}",
    "batch 128": "train.batch_size=256",
}
PAPER = ("loss.slack=0.15", "loss.detach_constant=true")
CHANGES = {
    "slack 0.15, K detached (the paper's)": PAPER,
    "slack 0.15": ("loss.slack=0.15",),
    "K detached": ("loss.detach_constant=true",),
    "slack 0.35": ("loss.slack=0.35",),
    "one side": ("loss.sides=one",),
    "λ 1e-5": ("loss.lam=1e-5",),
    "λ 1e-3": ("loss.lam=1e-3",),
    "3 products a step": ("train.iterations=3",),
    "ε ramp": ("schedule.loss.eps={name: ramp, first: 0.2, until: 0.5}",),
}


def variants() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Both losses along the way, then CLL with one thing changed at the end of it."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    way = list(UNDONE)
    for done in range(len(way) + 1):
        left = tuple(UNDONE[name] for name in way[done:])
        name = f"+ {way[done - 1]}" if done else "at first"
        found[f"CLL (p 0.15, K detached) {name}"] = (CLL, (*left, *PAPER))
        found[f"GloRo {name}"] = (GLORO, left)
    del found[f"CLL (p 0.15, K detached) + {way[-1]}"]  # the first of the changes below
    found |= {f"CLL, cpu budget, {name}": (CLL, settings) for name, settings in CHANGES.items()}
    return {**found, "CLL, cpu budget": (CLL, ())}


def trial(index: int, variant: tuple[str, tuple[str, ...]], seed: int) -> Trial:
    recipe, settings = variant
    folder = Path("runs") / "cll-and-gloro" / f"{index:02}-{seed}"
    return Trial(folder, read_recipe(recipe, "cpu", [*REDUCED, *settings, f"seed={seed}"]))


def cells(name: str, runs: list[Run]) -> list[str]:
    """Means over the seeds, and half their distance."""
    found = [run.statement() for run in runs]
    columns = [[100 * f.splits["val"].rows[i].value for f in found] for i in range(4)]
    columns += [[f.k_f for f in found]]
    row = [f"{statistics.mean(c):.1f} ± {(max(c) - min(c)) / 2:.1f}" for c in columns]
    print(name, *row, sep="  ", flush=True)
    return [name, *row]


def main() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    names, chosen = list(variants()), list(variants().values())
    trials = [trial(i, variant, seed) for i, variant in enumerate(chosen) for seed in SEEDS]
    complete(trials, LocalCrew())
    runs = [one.run for one in trials]
    groups = [runs[i * len(SEEDS) : (i + 1) * len(SEEDS)] for i in range(len(names))]
    table = [cells(name, group) for name, group in zip(names, groups, strict=True)]
    note = (
        "4C3F at half width, 4 epochs, one-cycle to 4e-3; validation split, "
        "proved bounds, mean ± half the distance of two seeds, percent"
    )
    write_table("cll-and-gloro", note, ["variant", "clean", "CRA 36/255", "72/255", "108/255", "K_f"], table)


if __name__ == "__main__":
    main()
