"""Training steps on two moons: one model, and the eight of Figure 4 at once, against the obvious eager step.

Interleaved, medians, one thread. Writes results/moons-step.json.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence

import obvious
import torch
from timing import interleaved, print_ratios

from lipcert.commands.support.allocator import keep_freed_memory
from lipcert.paper import REPRODUCTIONS
from lipcert.recipes import read_recipe
from lipcert.recipes.execution import build
from lipcert.runs import Run
from lipcert.train import Hardware
from lipcert.train.stacked.stack import Stack
from lipcert.train.state import Training
from results import write_table


def plain_step() -> Callable[[], None]:
    """Batches drawn at random, Adam as torch has it by default."""
    plan, _ = build(read_recipe("moons-ce"))
    model = obvious.mlp()

    def batch() -> tuple[torch.Tensor, torch.Tensor]:
        chosen = torch.randint(len(plan.train), (100,))
        return plan.train.x[chosen], plan.train.y[chosen]

    return obvious.training_step(model, batch, torch.optim.Adam(model.parameters(), lr=1e-3))


def lipcert_step(*recipes: str) -> Callable[[], None]:
    """A step of `lipcert train` of all of them, everything included but the end of an epoch."""
    fabric = Hardware("cpu").launch()
    plans = [build(read_recipe(recipe))[0] for recipe in recipes]
    keep_freed_memory()  # as the command line does
    return Stack([Training(plan, Run(tempfile.mkdtemp()), fabric) for plan in plans]).advance


def eight(recipes: Sequence[str]) -> Callable[[], None]:
    """Each alone, one after the other."""
    steps = [lipcert_step(recipe) for recipe in recipes]
    return lambda: [step() for step in steps] and None


def main() -> None:
    torch.set_num_threads(1)
    figure = [variant.recipe for variant in REPRODUCTIONS.create("moons").variants]
    works = {
        "plain": plain_step(),
        "moons-ce": lipcert_step("moons-ce"),
        "moons-cll": lipcert_step("moons-cll"),
        "moons-gloro": lipcert_step("moons-gloro"),
        "Figure 4, eight alone": eight(figure),
        "Figure 4, stacked": lipcert_step(*figure),
        "moons-cll, nine seeds stacked": lipcert_step(*["moons-cll"] * 9),
    }
    timings = interleaved(works, rounds=400)
    ratios = print_ratios(timings, "plain")
    stacked = timings["Figure 4, stacked"].ratio(timings["Figure 4, eight alone"])
    nine = timings["moons-cll, nine seeds stacked"].ratio(timings["moons-cll"]) / 9
    print(f"stacked/alone: {stacked} for Figure 4, {nine} for nine seeds")
    rows = [[name, str(ratio), "plain"] for name, ratio in ratios.items()]
    rows += [["Figure 4, stacked", str(stacked), "eight alone"]]
    rows += [["moons-cll, nine seeds stacked", str(nine), "nine alone"]]
    write_table("moons-step", "one thread, interleaved, medians and quartiles", ["work", "ratio", "to"], rows)


if __name__ == "__main__":
    main()
