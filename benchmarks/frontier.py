"""The frontier run beside 4C3F with CLL, each as long as it: a plain 4C3F, and one with as many parameters.

The frontier run is there with the ε of 4C3F as well, so that neither the network nor ε goes without a
control. Steps are timed first, taking turns; the recipe says how many epochs the frontier run has, the others
get as many as fit into the same time of one thread. `python benchmarks/frontier.py` trains what is missing,
two at a time, certifies the test split with the exact prover, and writes results/frontier.json;
`python docs/pictures.py frontier` draws it.
"""

from __future__ import annotations

import json
import os
import re

from frontier_search import IMAGE, TRAINED_ON, Candidate, Stage, cropped, epochs_within, milliseconds
from speedrun import FAST

from lipcert.models import create
from lipcert.recipes import Recipe, read_recipe
from lipcert.report.comparison import compare
from lipcert.sweeps import LocalCrew, Trial, complete
from results import write_table

FRONTIER = "cifar10-frontier"
OURS = "frontier"
FIXED = ("train.channels_last=true", "train.threads=1", "seed=1")
HIDDEN = ("method", "model", "source", "p", "seed", "K_hf")  # the same for all, or said by the name


def parameters(recipe: Recipe) -> int:
    model = create(recipe.model.name, num_classes=10, input_shape=IMAGE, **recipe.model.arguments)
    return sum(p.numel() for p in model.parameters())


def width_with(count: int) -> float:
    """Of the 4C3F that is nearest to so many parameters."""
    widths = [n / 256 for n in range(64, 513)]
    return min(widths, key=lambda w: abs(parameters(read_recipe(FAST, None, [f"model.width={w}"])) - count))


def stage() -> Stage:
    """The trainings, in pairs; the time is that of the frontier run, once its steps are timed."""
    width = width_with(parameters(read_recipe(FRONTIER)))
    candidates = {
        OURS: Candidate(FRONTIER),
        "4C3F": Candidate(FAST, (cropped(2),)),
        "frontier, ε = 0.15": Candidate(FRONTIER, ("loss.eps=0.15",)),
        "4C3F, as many parameters": Candidate(FAST, (f"model.width={width}", cropped(2))),
    }
    return Stage("frontier", 0, candidates)


def trials(these: Stage) -> dict[str, Trial]:
    times, recipe = milliseconds(these), these.candidates[OURS].recipe()
    seconds = 1e-3 * times[OURS] * recipe.train.epochs * -(-TRAINED_ON // recipe.train.batch_size)
    found = {}
    for name, candidate in these.candidates.items():
        epochs = epochs_within(seconds, candidate.recipe(), times[name])
        settings = [*candidate.settings, *FIXED, f"train.epochs={epochs}"]
        certify = recipe.certify.model_dump(mode="json")
        shown = [f"certify.{key}={json.dumps(value)}" for key, value in certify.items()]
        path = these.folder / "-".join(re.findall(r"[\w.]+", name, re.ASCII))
        found[name] = Trial(path, read_recipe(candidate.base, None, [*settings, *shown]))
        print(f"{name:30} {times[name]:8.1f} ms, {epochs} epochs", flush=True)
    return found


def main() -> None:
    named = trials(stage())
    complete(list(named.values()), LocalCrew())
    compared = compare([one.run for one in named.values()])
    counts = [f"{parameters(one.recipe) / 1e6:.2f} M" for one in named.values()]
    ours = [row for row in compared.rows if not row.is_printed]
    shown = [column for column in compared.columns if column.title not in HIDDEN]
    table = [
        [name, count, *(column.text(row) for column in shown)]
        for name, count, row in zip(named, counts, ours, strict=True)
    ]
    note = (
        "equal time of one thread, two trainings at a time on two cores, CLL with slack 0.25, seed 1, exact "
        "proofs, test split, percent; seconds of training by the clock"
    )
    write_table("frontier", note, ["training", "parameters", *(column.title for column in shown)], table)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
