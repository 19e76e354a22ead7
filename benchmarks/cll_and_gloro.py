"""Why CLL trailed GloRo in short trainings: one thing changed at a time, at half width and four epochs.

Real CIFAR-10, validation split only, proved bounds, two seeds; about 80 minutes on two cores, and what is
finished is kept. Writes results/cll-and-gloro.json.
"""

from __future__ import annotations

import json
import os
import statistics
from pathlib import Path

from lipcert.train.rundir import RunDirectory
from lipcert.trials import Trial, run_trials
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
# The paper's initialisation has gain √2; K_f then starts above 1000, and λK_f² with it.
LARGE = "model.gain=1.4142135623730951"
OLD = (LARGE, "train.iterations=1", "loss.slack=0.15")
CLL, GLORO = "cifar10-4c3f-cll", "cifar10-4c3f-gloro"

VARIANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "CLL, gain √2, 1 iteration": (CLL, OLD),
    "GloRo, gain √2, 1 iteration": (GLORO, OLD[:2]),
    "CLL, gain √2, 1 iteration, K attached": (CLL, (*OLD, "loss.detach_constant=false")),
    "CLL, gain √2, 1 iteration, one side": (CLL, (*OLD, "loss.sides=one")),
    "CLL, gain √2, 1 iteration, β ramp": (
        CLL,
        (*OLD, "schedule.loss.beta={name: ramp, first: 0.01, until: 0.5}"),
    ),
    "CLL, gain 0.8, 1 iteration": (CLL, ("train.iterations=1", "loss.slack=0.15")),
    "GloRo, gain 0.8, 1 iteration": (GLORO, ("train.iterations=1",)),
    "CLL, gain 0.8, 5 iterations": (CLL, ("loss.slack=0.15",)),
    "GloRo, gain 0.8, 5 iterations": (GLORO, ()),
    "CLL as before, slack 0.25": (CLL, ("loss.slack=0.25",)),
    "CLL as before, slack 0.35": (CLL, ("loss.slack=0.35",)),
    "CLL as before, slack 0.25, λ 1e-5": (CLL, ("loss.slack=0.25", "loss.lam=1e-5")),
    "CLL as before, slack 0.25, λ 1e-3": (CLL, ("loss.slack=0.25", "loss.lam=1e-3")),
    "CLL as before, slack 0.25, K attached": (CLL, ("loss.slack=0.25", "loss.detach_constant=false")),
}


def trial(index: int, name: str, seed: int) -> Trial:
    recipe, settings = VARIANTS[name]
    folder = Path("runs") / "cll-and-gloro" / f"{index:02}-{seed}"
    return Trial(recipe, seed, folder, budget="cpu", settings=(*REDUCED, *settings))


def cells(name: str, runs: list[RunDirectory]) -> list[str]:
    """Means over the seeds, and half their distance."""
    found = [json.loads(run.certificate.read_text()) for run in runs]
    splits = [f["splits"]["val"] for f in found]
    columns = [[100 * s["clean"]["value"] for s in splits]]
    columns += [[100 * s["certified"][i]["value"] for s in splits] for i in range(3)]
    columns += [[f["k_f"] for f in found]]
    row = [f"{statistics.mean(c):.1f} ± {(max(c) - min(c)) / 2:.1f}" for c in columns]
    print(name, *row, sep="  ", flush=True)
    return [name, *row]


def main() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    names = list(VARIANTS)
    trials = [trial(i, name, seed) for i, name in enumerate(names) for seed in SEEDS]
    runs = run_trials(trials)
    groups = [runs[i * len(SEEDS) : (i + 1) * len(SEEDS)] for i in range(len(names))]
    table = [cells(name, group) for name, group in zip(names, groups, strict=True)]
    note = (
        "4C3F at half width, 4 epochs, batch 256, one-cycle to 4e-3, crop and flip; validation split, "
        "proved bounds, mean ± half the distance of two seeds, percent"
    )
    write_table("cll-and-gloro", note, ["variant", "clean", "CRA 36/255", "72/255", "108/255", "K_f"], table)


if __name__ == "__main__":
    main()
