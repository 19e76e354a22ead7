"""Measure how close a proved constant is to the truth: a witnessed lower bound over the proved one."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from rich.progress import track

from lipcert.bounds.witness import Witness, search
from lipcert.certificates.certifier import certifier
from lipcert.certificates.loading import load
from lipcert.certificates.progress import proving
from lipcert.certificates.statement import Environment
from lipcert.data import Dataset
from lipcert.environment import environment
from lipcert.errors import InputError, LipcertError
from lipcert.hashing import tensors_sha256
from lipcert.recipes.reading import read_recipe
from lipcert.recipes.schema import Recipe
from lipcert.runs import Run
from lipcert.runs.tightness import BudgetName, Pair, Tightness


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

_PAIRS_AT_ONCE = 64


def measure_run(run: Run, budget: BudgetName = "full", seed: int = 0, quiet: bool = True) -> Tightness:
    """Search from the training data of the recipe in a run directory."""
    if not run.recipe.is_file():
        raise InputError(f"{run.path}: tightness is searched from training data: give a run directory")
    recipe = read_recipe(str(run.recipe))
    return measure(run, recipe, recipe.make_data("train"), budget, seed, quiet)


def measure(
    run: Run, recipe: Recipe, data: Dataset, budget: BudgetName, seed: int = 0, quiet: bool = True
) -> Tightness:
    """Search pair by pair from training data; finished batches are kept in the run's tightness.json."""
    model = load(run.path)
    dtype = next(model.parameters()).dtype
    images = data.x.dtype == torch.uint8 or bool((data.x.min() >= 0) & (data.x.max() <= 1))
    limits = (0.0, 1.0) if images else None
    with proving():
        k_f = certifier(model, data.input_shape, recipe.certify.effort).k_f
    found = _begin(budget, seed, tensors_sha256(model.state_dict()), k_f)
    earlier = run.tightness()
    if earlier is not None and earlier.is_of(found):
        found = earlier
    batches = range(0, found.pairs, _PAIRS_AT_ONCE)
    for batch in track(batches[found.batches :], "tightness", transient=True, disable=quiet):
        generator = torch.Generator().manual_seed(seed * 1_000_003 + batch)
        index = torch.randint(len(data), (2, min(_PAIRS_AT_ONCE, found.pairs - batch)), generator=generator)
        x1, x2 = (data.floats(i, dtype) for i in index)
        found = _noted(found, search(model, x1, x2, found.steps, found.lr, limits))
        run.save_tightness(found)
    return found


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
        environment=Environment(**environment()),
    )


def _noted(found: Tightness, witness: Witness) -> Tightness:
    """Keep the best witness; one above the proved constant would disprove it."""
    if witness.lower > found.upper:
        raise LipcertError(f"a pair of points stretches by {witness.lower}, above the proved {found.upper}")
    news: dict[str, Any] = {"batches": found.batches + 1}
    if witness.lower > found.lower:
        pair = Pair(x1=witness.x1.tolist(), x2=witness.x2.tolist(), i=witness.i, j=witness.j)
        news |= {"lower": witness.lower, "tightness": witness.lower / found.upper, "witness": pair}
    return found.model_copy(update=news)
