"""How close a proved constant is to the truth: a witnessed lower bound over the proved upper one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.progress import track

from lipcert.atomic import write_json
from lipcert.bounds.witness import Witness, search
from lipcert.certificates.certificate import certifier
from lipcert.certificates.progress import proving
from lipcert.environment import environment
from lipcert.errors import InputError, LipcertError
from lipcert.hashing import tensors_sha256
from lipcert.models import load
from lipcert.recipes.reading import read_recipe


class Budget(NamedTuple):
    """How long to search."""

    pairs: int
    steps: int
    lr: float


# The paper's search, and shorter ones with larger steps: at its learning rate 200 steps reach half as far.
BUDGETS = {"full": Budget(4000, 1000, 3e-4), "cpu": Budget(64, 200, 1e-2), "smoke": Budget(32, 5, 1e-2)}

_PAIRS_AT_ONCE = 64


def measure(run: Path, budget: str = "full", seed: int = 0, quiet: bool = True) -> dict[str, Any]:
    """Search pair by pair from the training data; finished batches are kept in the run's tightness.json."""
    if budget not in BUDGETS:
        raise InputError(f"--budget: expected one of {', '.join(BUDGETS)}, got {budget!r}")
    if not (run / "recipe.yaml").is_file():
        raise InputError(f"{run}: tightness is searched from training data: give a run directory")
    pairs, steps, lr = BUDGETS[budget]
    recipe = read_recipe(str(run / "recipe.yaml"))
    model, data = load(run), recipe.make_data("train")
    dtype = next(model.parameters()).dtype
    images = data.x.dtype == torch.uint8 or bool((data.x.min() >= 0) & (data.x.max() <= 1))
    limits = (0.0, 1.0) if images else None
    with proving():
        k_f = certifier(model, data.input_shape, recipe.certify.effort).k_f
    found = _begin(run, budget, seed, tensors_sha256(model.state_dict()), k_f)
    batches = range(0, pairs, _PAIRS_AT_ONCE)
    for batch in track(batches[found["batches"] :], "tightness", transient=True, disable=quiet):
        generator = torch.Generator().manual_seed(seed * 1_000_003 + batch)
        index = torch.randint(len(data), (2, min(_PAIRS_AT_ONCE, pairs - batch)), generator=generator)
        x1, x2 = (data.floats(i, dtype) for i in index)
        _note(found, search(model, x1, x2, steps, lr, limits))
        write_json(run / "tightness.json", found)
    return found


def _begin(run: Path, budget: str, seed: int, weights: str, upper: float) -> dict[str, Any]:
    """Return what an interrupted search of the same weights found so far, or nothing yet."""
    asked = {"budget": budget, **BUDGETS[budget]._asdict(), "seed": seed, "model_sha256": weights}
    path = run / "tightness.json"
    if path.is_file():
        try:
            earlier: dict[str, Any] = json.loads(path.read_text())
        except ValueError:
            raise InputError(f"{path}: cut short, or not JSON; remove it to search anew") from None
        if asked.items() <= earlier.items():
            return earlier
    begun = {"batches": 0, "lower": 0.0, "upper": upper, "tightness": 0.0}
    return {**asked, **begun, "environment": environment()}


def _note(found: dict[str, Any], witness: Witness) -> None:
    """Keep the best witness; one above the proved constant would disprove it."""
    if witness.lower > found["upper"]:
        raise LipcertError(
            f"a pair of points stretches by {witness.lower}, above the proved {found['upper']}"
        )
    found["batches"] += 1
    if witness.lower > found["lower"]:
        found["lower"], found["tightness"] = witness.lower, witness.lower / found["upper"]
        found["witness"] = {
            "x1": witness.x1.tolist(),
            "x2": witness.x2.tolist(),
            "i": witness.i,
            "j": witness.j,
        }
