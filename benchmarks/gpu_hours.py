"""Estimate how many hours of a GPU the paper's budget of every table and figure on images takes.

Nothing is trained. The multiplications and additions of one forward and backward pass are counted on the meta
device and multiplied by the number of steps; their speed is assumed. Estimates of the constants, augmentation
and certificates are not counted; `lipcert estimate` counts them for one recipe. Writes
results/gpu-hours.json, and the hours for `lipcert list reproductions`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode

from lipcert.atomic import write_json
from lipcert.models import MODELS
from lipcert.paper import REPRODUCTIONS, Reproduction
from lipcert.paper.definition import FULL_COSTS
from lipcert.recipes import read_recipe
from results import write_table

# Assumed: a third of the 19.5 TFLOP/s that an A100 has in float32, and the time to launch a step's kernels.
SPEED, LAUNCH = 6.5e12, 0.01

# Input shape, classes and training images.
DATA = {
    "cifar10": ((3, 32, 32), 10, 50_000),
    "cifar100": ((3, 32, 32), 100, 50_000),
    "tiny-imagenet": ((3, 64, 64), 200, 100_000),
}


@cache
def operations(recipe: str) -> float:
    """Count what one step of a recipe multiplies and adds."""
    found = read_recipe(recipe)
    shape, classes, _ = DATA[found.data.name]
    with torch.device("meta"):
        model = MODELS.create(
            found.model.name, num_classes=classes, input_shape=shape, **found.model.arguments
        )
        images = torch.empty(found.train.batch_size, *shape)
    with FlopCounterMode(display=False) as counter:
        model(images).sum().backward()
    return float(counter.get_total_flops())


def row(reproduction: Reproduction) -> list[str] | None:
    """Add up the trainings of the full budget; None if they are not all on images."""
    trials = [(variant.recipe, trial.recipe) for variant, trial in reproduction.trials(Path(), "full")]
    if not trials or any(recipe.data.name not in DATA for _, recipe in trials):
        return None
    steps = total = seconds = 0.0
    for name, recipe in trials:
        mine = DATA[recipe.data.name][2] / recipe.train.batch_size * recipe.train.epochs
        steps += mine
        total += mine * operations(name)
        seconds += mine * max(operations(name) / SPEED, LAUNCH)
    cells = [str(len(trials)), f"{steps / 1e6:.1f}", f"{total / 1e18:.2g}", rounded(seconds / 3600)]
    return [reproduction.name, *cells]


def rounded(hours: float) -> str:
    """Write two digits, as more would be pretence."""
    return f"{float(f'{hours:.2g}'):g}"


def main() -> None:
    """Estimate every reproduction."""
    rows = [row(REPRODUCTIONS.create(name)) for name in REPRODUCTIONS]
    titles = ["reproduction", "trainings", "million steps", "10¹⁸ operations", "hours"]
    note = (
        f"an estimate, nothing was run: operations of forward and backward passes of the full budget at "
        f"{SPEED / 1e12:g} TFLOP/s, a third of an A100's peak in float32, and at least "
        f"{1000 * LAUNCH:g} ms per step"
    )
    table = [one for one in rows if one is not None]
    write_table("gpu-hours", note, titles, table)
    write_json(FULL_COSTS, {one[0]: float(one[-1]) for one in table})


if __name__ == "__main__":
    main()
