"""Measure how close a proved constant is to the truth: a witnessed lower bound over the proved one."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lipcert.atomic import check_folder_place
from lipcert.bounds.witness import Witness, search
from lipcert.certificates.certifier import Certifier
from lipcert.certificates.loading import load
from lipcert.certificates.shards import ALONE, Shard
from lipcert.data import Dataset
from lipcert.environment import environment
from lipcert.errors import InputError, LipcertError
from lipcert.hashing import tensors_sha256
from lipcert.progress import proving, tracked
from lipcert.recipes.reading import read_run_recipe
from lipcert.recipes.schema import Recipe
from lipcert.runs import Run
from lipcert.runs.tightness import PAIRS_AT_ONCE, Pair, Tightness
from lipcert.types import BudgetName, Shape


class Budget(NamedTuple):
    """The length of a search."""

    pairs: int
    steps: int
    lr: float


# The paper's search, and shorter ones with larger steps: at its learning rate 200 steps reach half as far.
BUDGETS: dict[BudgetName, Budget] = {
    "full": Budget(4000, 1000, 3e-4),
    "cpu": Budget(64, 200, 1e-2),
    "smoke": Budget(32, 5, 1e-2),
}


def measure_run(
    run: Run,
    budget: BudgetName = "full",
    seed: int = 0,
    minutes: float | None = None,
    device: str | torch.device = "cpu",
    shard: Shard = ALONE,
) -> Tightness:
    """Search from the training data of the recipe in a run directory."""
    if minutes is not None and not minutes > 0:
        raise InputError(f"--minutes: expected a number > 0, got {minutes}")
    if not run.recipe.is_file():
        raise InputError(f"{run.path}: tightness is searched from training data: give a run directory")
    check_folder_place(run.path)
    recipe = read_run_recipe(run)
    return measure(run, recipe, recipe.make_data("train"), budget, seed, minutes, device, shard)


def measure(
    run: Run,
    recipe: Recipe,
    data: Dataset,
    budget: BudgetName,
    seed: int = 0,
    minutes: float | None = None,
    device: str | torch.device = "cpu",
    shard: Shard = ALONE,
) -> Tightness:
    """Search pair by pair from training data; finished batches are kept in the run's tightness.json.

    Several processes search one batch each at a time. After `minutes` the search ends, perhaps within a
    batch: what that found counts, but the batch is searched again when the search goes on.
    """
    deadline = math.inf if minutes is None else time.monotonic() + 60 * minutes
    model = load(run.path, run.statement() if run.certificate.is_file() else None).to(device)
    dtype = next(model.parameters()).dtype
    images = data.x.dtype == torch.uint8 or bool((data.x.min() >= 0) & (data.x.max() <= 1))
    limits = (0.0, 1.0) if images else None
    with proving():
        k_f = Certifier(model, data.input_shape, recipe.certify.effort, shard).k_f
    found = _begin(budget, seed, tensors_sha256(model.state_dict()), k_f)
    earlier = shard.first(run.tightness())
    if earlier is not None and earlier.is_of(found):
        found = earlier
    starts = range(0, found.pairs, PAIRS_AT_ONCE)[found.batches :]  # where batches begin
    rounds = [starts[i : i + shard.count] for i in range(0, len(starts), shard.count)]

    def is_over() -> bool:
        return time.monotonic() > deadline

    for batches in tracked(rounds, "tightness", quiet=shard.index > 0):
        mine = None
        if shard.index < len(batches):
            x1, x2 = (x.to(device) for x in _pairs(data, found, batches[shard.index], dtype))
            mine = search(model, x1, x2, found.steps, found.lr, limits, is_over)
        best, is_last = _best(shard, mine, data.input_shape, is_over())
        found = _noted(found, best, 0 if is_last else len(batches))
        if shard.index == 0:
            run.save_tightness(found)
        if is_last:
            break
    return found


def _pairs(data: Dataset, found: Tightness, start: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the points of one batch of pairs, which depend on the seed and its first pair alone."""
    generator = torch.Generator().manual_seed(found.seed * 1_000_003 + start)
    count = min(PAIRS_AT_ONCE, found.pairs - start)
    first, second = torch.randint(len(data), (2, count), generator=generator)
    return data.floats(first, dtype), data.floats(second, dtype)


def _best(shard: Shard, mine: Witness | None, shape: Shape, is_over: bool) -> tuple[Witness, bool]:
    """Return the best witness of all processes, and whether the time of one of them was over."""
    if shard.count == 1 and mine is not None:
        return mine, is_over
    every = torch.zeros(shard.count, 2 * math.prod(shape) + 4, dtype=torch.float64)  # one row per process
    if mine is not None:
        numbers = torch.tensor([mine.lower, mine.i, mine.j, float(is_over)], dtype=torch.float64)
        every[shard.index] = torch.cat([numbers, mine.x1.flatten(), mine.x2.flatten()])
    every = shard.total(every)
    best = every[int(every[:, 0].argmax())]
    x1, x2 = best[4:].view(2, *shape)
    return Witness(float(best[0]), x1, x2, int(best[1]), int(best[2])), bool(every[:, 3].any())


def _begin(budget: BudgetName, seed: int, weights: str, upper: float) -> Tightness:
    """Return a search that has found nothing yet."""
    pairs, steps, lr = BUDGETS[budget]
    return Tightness(
        budget=budget,
        pairs=pairs,
        steps=steps,
        lr=lr,
        seed=seed,
        model_sha256=weights,
        batches=0,
        lower=0.0,
        upper=upper,
        tightness=0.0,
        environment=environment(),
    )


def _noted(found: Tightness, witness: Witness, batches: int) -> Tightness:
    """Keep the best witness; one above the proved constant would disprove it."""
    if witness.lower > found.upper:
        raise LipcertError(f"a pair of points stretches by {witness.lower}, above the proved {found.upper}")
    news: dict[str, Any] = {"batches": found.batches + batches}
    if witness.lower > found.lower:
        pair = Pair(x1=witness.x1.tolist(), x2=witness.x2.tolist(), i=witness.i, j=witness.j)
        news |= {"lower": witness.lower, "tightness": witness.lower / found.upper, "witness": pair}
    return found.model_copy(update=news)
