"""Which network certifies most in a given time? Candidates for the frontier run, equal seconds of one thread.

`python benchmarks/frontier_search.py short` tries networks and losses for 300 seconds each, `long` what is
left of them for 900, where augmentation begins to matter. Steps of all candidates are timed first, taking
turns; each then gets as many epochs as fit. What is missing is trained, two at a time; writes
results/frontier-search-short.json or -long.json.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from speedrun import FAST, found, trial
from timing import interleaved

from lipcert import Bounded
from lipcert.atomic import write_json
from lipcert.models import create
from lipcert.recipes import Recipe, read_recipe
from lipcert.sweeps import LocalCrew, Trial, complete
from results import write_table

GRID = "cifar10-grid"
IMAGE, TRAINED_ON = (3, 32, 32), 47_500

# On squares of 2 × 2 pixels, all of them.
PLAIN, RESIDUAL = ("model.width=1.0",), ("model.width=1.0", "model.layer=linear-residual")
LIRESNET = "model={name: liresnet, width: 64, depth: 2, dense: 1, features: 256, head: linear}"
LARGE = ("train.batch_size=256", "optimizer.lr=5.6e-3")
EMMA = (
    "loss={name: emma-annealing, eps: 0.4235}",
    "schedule.loss.eps={name: ramp, first: 0.0333, until: 0.5}",
)


@dataclass(frozen=True)
class Candidate:
    """A recipe and what is changed in it."""

    base: str
    settings: tuple[str, ...] = ()

    def recipe(self) -> Recipe:
        return read_recipe(self.base, None, self.settings)


@dataclass(frozen=True)
class Stage:
    """Candidates by name, and the seconds each gets."""

    name: str
    seconds: int
    candidates: dict[str, Candidate]

    @property
    def folder(self) -> Path:
        return Path("runs/frontier-search") / self.name


def cropped(pixels: int) -> str:
    return f"train.augment={{crop: {pixels}, flip: true, jitter: 0.0, rotate: 0.0}}"


SHORT = Stage(
    "short",
    300,
    {
        "4C3F; CLL": Candidate(FAST),
        "plain; CLL": Candidate(GRID, PLAIN),
        "plain, twice as wide; CLL": Candidate(GRID, ("model.width=2.0",)),
        "linear residuals; CLL": Candidate(GRID, RESIDUAL),
        "linear residuals; CLL, ε = 0.25": Candidate(GRID, (*RESIDUAL, "loss.eps=0.25")),
        "linear residuals; CLL, batches of 256": Candidate(GRID, (*RESIDUAL, *LARGE)),
        "linear residuals; annealed EMMA": Candidate(GRID, (*RESIDUAL, *EMMA)),
        "LiResNet 2 × 64; CLL": Candidate(GRID, (LIRESNET,)),
    },
)
LONG = Stage(
    "long",
    900,
    {
        "linear residuals, batches of 256, crop 2": Candidate(GRID, (*RESIDUAL, *LARGE, cropped(2))),
        "plain, crop 2": Candidate(GRID, (*PLAIN, cropped(2))),
        "linear residuals, batches of 256": Candidate(GRID, (*RESIDUAL, *LARGE)),
        "plain": Candidate(GRID, PLAIN),
        "plain, half as wide again, crop 2": Candidate(GRID, ("model.width=1.5", cropped(2))),
        "4C3F": Candidate(FAST),
    },
)


def step_of(recipe: Recipe) -> Callable[[], None]:
    """A training step on noise, but for augmentation."""
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


def milliseconds(stage: Stage) -> dict[str, float]:
    """Of a step with one thread; measured once, so that an interrupted search goes on as it began."""
    path = stage.folder / "times.json"
    times: dict[str, float] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    new = {name: candidate for name, candidate in stage.candidates.items() if name not in times}
    if new:
        torch.set_num_threads(1)
        timings = interleaved({name: step_of(c.recipe()) for name, c in new.items()}, rounds=12)
        times |= {name: round(1e3 * timing.median, 1) for name, timing in timings.items()}
        stage.folder.mkdir(parents=True, exist_ok=True)
        write_json(path, times)
    return times


def epochs_within(seconds: float, recipe: Recipe, milliseconds: float) -> int:
    steps = -(-TRAINED_ON // recipe.train.batch_size)
    return max(1, round(seconds / (1e-3 * milliseconds * steps)))


def candidate_trial(stage: Stage, name: str, milliseconds: float) -> Trial:
    candidate = stage.candidates[name]
    epochs = epochs_within(stage.seconds, candidate.recipe(), milliseconds)
    folder = "-".join(re.findall(r"\w+", name, re.ASCII))
    fixed = (f"train.epochs={epochs}", "train.channels_last=true", "seed=1")
    return trial(stage.folder / folder, candidate.base, None, *candidate.settings, *fixed)


def row(name: str, one: Trial) -> list[str]:
    """In training, and what is proved."""
    arguments = one.recipe.model.arguments
    model = create(one.recipe.model.name, num_classes=10, input_shape=IMAGE, **arguments)
    count = sum(p.numel() for p in model.parameters()) / 1e6
    last = one.run.metrics()[-1]
    numbers = [f"{count:.2f} M", str(one.recipe.train.epochs), f"{last.seconds:.0f}"]
    return [name, *numbers, f"{100 * last.accuracy:.1f}", *found(one.run)]


def main(stage: Stage) -> None:
    times = milliseconds(stage)
    trials = {name: candidate_trial(stage, name, times[name]) for name in stage.candidates}
    for name, one in trials.items():
        print(f"{name:42} {times[name]:8.1f} ms, {one.recipe.train.epochs} epochs", flush=True)
    complete(list(trials.values()), LocalCrew())
    note = (
        f"seed 1, epochs for about {stage.seconds} s of an idle thread, "
        "validation split but for the column of the last epoch's training accuracy, proved bounds, percent"
    )
    titles = ["candidate", "parameters", "epochs", "seconds", "training"]
    titles += ["clean", "CRA 36/255", "72/255", "108/255", "K_f"]
    write_table(f"frontier-search-{stage.name}", note, titles, [row(*pair) for pair in trials.items()])


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main({"short": SHORT, "long": LONG}[sys.argv[1]])
