"""A recipe carried out: build, train, certify, write the run directory."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch

from lipcert.atomic import write_json
from lipcert.certificate import Certifier
from lipcert.certificate_file import describe
from lipcert.data import Dataset
from lipcert.models import ModelCard, save
from lipcert.recipes.schema import Recipe, within
from lipcert.shards import Shard
from lipcert.train import Hardware, Plan, fit
from lipcert.train.hardware import is_first_process, shard_of
from lipcert.train.rundir import RunDirectory


def execute(
    recipe: Recipe,
    output: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    hardware: Hardware | None = None,
) -> RunDirectory:
    """Train and certify; the directory holds everything that was found out."""
    run = RunDirectory(output)
    if recipe.train.threads is not None:
        torch.set_num_threads(recipe.train.threads)
    plan, card = build(recipe)
    if is_first_process():
        run.start(recipe.model_dump(mode="json"), resume=resume, overwrite=overwrite)
    fabric = (hardware or Hardware()).launch()
    fabric.barrier()  # nobody looks into the directory before it is ready
    if not run.certificate.exists():
        seconds = fit(plan, run, fabric)
        if fabric.is_global_zero:
            save(plan.model, card, run.model)
        findings = _findings(recipe, plan, seconds, shard_of(fabric))
        if fabric.is_global_zero:
            write_json(run.certificate, findings)
    fabric.barrier()
    return run


def build(recipe: Recipe) -> tuple[Plan, ModelCard]:
    """The training a recipe describes, and the card of its model."""
    train = recipe.make_data("train")
    card = recipe.make_card(train)
    parts: dict[str, Any] = {
        "model": recipe.make_model(card),
        "loss": recipe.make_loss(),
        "optimizer": recipe.make_optimizer(),
        "schedules": recipe.make_schedules(),
        "train": train,
        "val": recipe.make_data("val") if recipe.train.validate_every else None,
        "seed": recipe.seed,
    }
    settings = recipe.train.model_dump(exclude={"dtype", "threads", "augment"})
    settings["augmentation"] = recipe.train.augment
    plan: Plan = within("train", partial(Plan, **parts, **settings))
    return plan, card


def _findings(recipe: Recipe, plan: Plan, seconds: float, shard: Shard) -> dict[str, Any]:
    """The certificate of the trained model on the recipe's splits, and what made it."""
    prover = Certifier(plan.model.eval(), plan.train.input_shape, recipe.certify.effort, shard)
    splits: dict[str, Dataset] = {split: recipe.make_data(split) for split in recipe.certify.splits}
    loss = plan.loss_at(1.0)
    return {
        **describe(
            plan.model,
            prover,
            recipe.data.model_dump(mode="json"),
            splits,
            recipe.certify.radii,
            recipe.certify.rounding,
            shard,
        ),
        "recipe": recipe.name,
        "seed": recipe.seed,
        "loss": {"name": recipe.loss.name, "eps": _number(loss, "eps"), "slack": _number(loss, "slack")},
        "k_hf": loss.whole_lipschitz(prover.k_f),
        "seconds": round(seconds, 1),
    }


def _number(loss: object, name: str) -> float | None:
    value = getattr(loss, name, None)
    return None if value is None else float(value)
