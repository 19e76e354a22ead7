"""Which network certifies most in a given time? Candidates for the frontier run, equal seconds of one thread.

Steps of all candidates are timed first, taking turns; each then gets as many epochs as fit into `SECONDS`.
`python benchmarks/frontier_search.py` trains what is missing, two at a time, and writes
results/frontier-search.json; with `times` it only times the steps.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from speedrun import FAST, found, trial
from timing import interleaved

from lipcert import Bounded
from lipcert.atomic import write_json
from lipcert.models import create
from lipcert.recipes import read_recipe
from lipcert.sweeps import LocalCrew, Trial, complete
from results import write_table

SECONDS = 300
FOLDER = Path("runs/frontier-search")
GRID = "cifar10-grid"
IMAGE, TRAINED_ON = (3, 32, 32), 47_500

# On squares of 2 × 2 pixels, all of them.
WIDE, RESIDUAL = ("model.width=1.0",), ("model.width=1.0", "model.layer=linear-residual")
LIRESNET = "model={name: liresnet, width: 64, depth: 2, dense: 1, features: 256, head: linear}"
EMMA = (
    "loss={name: emma-annealing, eps: 0.4235}",
    "schedule.loss.eps={name: ramp, first: 0.0333, until: 0.5}",
)

# Name: recipe and what is changed in it.
CANDIDATES: dict[str, tuple[str, tuple[str, ...]]] = {
    "4C3F; CLL": (FAST, ()),
    "plain; CLL": (GRID, WIDE),
    "plain, twice as wide; CLL": (GRID, ("model.width=2.0",)),
    "linear residuals; CLL": (GRID, RESIDUAL),
    "linear residuals; CLL, ε = 0.25": (GRID, (*RESIDUAL, "loss.eps=0.25")),
    "linear residuals; CLL, batches of 256": (
        GRID,
        (*RESIDUAL, "train.batch_size=256", "optimizer.lr=5.6e-3"),
    ),
    "linear residuals; annealed EMMA": (GRID, (*RESIDUAL, *EMMA)),
    "LiResNet 2 × 64; CLL": (GRID, (LIRESNET,)),
}


def step_of(name: str) -> Callable[[], None]:
    """A training step on noise, but for augmentation."""
    recipe = read_recipe(CANDIDATES[name][0], None, CANDIDATES[name][1])
    model = create(recipe.model.name, num_classes=10, input_shape=IMAGE, **recipe.model.arguments)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    bounded, loss = Bounded(model, IMAGE, iterations=recipe.train.iterations).train(), recipe.make_loss()
    optimizer = recipe.make_optimizer()(bounded.parameters())
    x, y = torch.rand(recipe.train.batch_size, *IMAGE), torch.randint(10, (recipe.train.batch_size,))
    x = x.contiguous(memory_format=torch.channels_last)

    def step() -> None:
        logits, lip = bounded(x)
        optimizer.zero_grad()
        (loss(logits, y, lip).mean() + loss.penalty(lip)).backward()
        optimizer.step()

    return step


def milliseconds() -> dict[str, float]:
    """Of a step with one thread; measured once, so that an interrupted search goes on as it began."""
    path = FOLDER / "times.json"
    times: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}
    new = [name for name in CANDIDATES if name not in times]
    if new:
        torch.set_num_threads(1)
        timings = interleaved({name: step_of(name) for name in new}, rounds=12)
        times |= {name: round(1e3 * timing.median, 1) for name, timing in timings.items()}
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_json(path, times)
    return times


def epochs_of(name: str, step: float) -> int:
    recipe = read_recipe(CANDIDATES[name][0], None, CANDIDATES[name][1])
    return max(1, round(SECONDS / (1e-3 * step * -(-TRAINED_ON // recipe.train.batch_size))))


def candidate_trial(name: str, epochs: int) -> Trial:
    recipe, settings = CANDIDATES[name]
    folder = "-".join(re.findall(r"\w+", name, re.ASCII))
    fixed = (f"train.epochs={epochs}", "train.channels_last=true", "seed=1")
    return trial(FOLDER / folder, recipe, None, *settings, *fixed)


def row(name: str, one: Trial) -> list[str]:
    arguments = one.recipe.model.arguments
    model = create(one.recipe.model.name, num_classes=10, input_shape=IMAGE, **arguments)
    count = sum(p.numel() for p in model.parameters()) / 1e6
    seconds = one.run.read_metrics()[-1]["seconds"]  # of the whole training
    return [name, f"{count:.2f} M", str(one.recipe.train.epochs), f"{seconds:.0f}", *found(one.run)]


def main() -> None:
    times = milliseconds()
    epochs = {name: epochs_of(name, times[name]) for name in CANDIDATES}
    for name in CANDIDATES:
        print(f"{name:40} {times[name]:8.1f} ms, {epochs[name]} epochs")
    if sys.argv[1:] == ["times"]:
        return
    trials = {name: candidate_trial(name, epochs[name]) for name in CANDIDATES}
    complete(list(trials.values()), LocalCrew())
    note = f"seed 1, epochs for about {SECONDS} s of one thread, validation split, proved bounds, percent"
    titles = ["network; loss", "parameters", "epochs", "seconds"]
    titles += ["clean", "CRA 36/255", "72/255", "108/255", "K_f"]
    write_table("frontier-search", note, titles, [row(name, one) for name, one in trials.items()])


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
