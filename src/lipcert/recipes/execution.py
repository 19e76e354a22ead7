"""A recipe carried out: build, train, certify, write the run directory."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch

from lipcert.atomic import write_json
from lipcert.certificate import Certificate, Certifier
from lipcert.certificate_file import certify_data, describe
from lipcert.certified_samples import save_certificates
from lipcert.data import Dataset
from lipcert.models import ModelCard, save
from lipcert.recipes.schema import Recipe, within
from lipcert.recipes.tightness import measure
from lipcert.shards import Shard
from lipcert.train import Hardware, Plan, fit
from lipcert.train.hardware import is_first_process, shard_of
from lipcert.train.rundir import RunDirectory

Splits = dict[str, tuple[Dataset, Certificate]]


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
        prover, splits = _certify(recipe, plan, shard_of(fabric))
        if fabric.is_global_zero:
            save_certificates(run.certified, splits)
            write_json(run.certificate, _findings(recipe, plan, prover, splits, seconds))
    fabric.barrier()
    # The others are done: nobody waits for this.
    if recipe.certify.tightness is not None and fabric.is_global_zero:
        measure(run.path, recipe.certify.tightness, quiet=not sys.stderr.isatty())
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


def _certify(recipe: Recipe, plan: Plan, shard: Shard) -> tuple[Certifier, Splits]:
    """The proof, and the certificate of every sample of the recipe's splits."""
    settings = recipe.certify
    shard.share(plan.model.cpu())
    prover = Certifier(plan.model.eval(), plan.train.input_shape, settings.effort, shard)
    data = {split: recipe.make_data(split) for split in settings.splits}
    certify = partial(certify_data, prover, rounding=settings.rounding, shard=shard, local=settings.balls)
    return prover, {split: (samples, certify(samples)) for split, samples in data.items()}


def _findings(
    recipe: Recipe, plan: Plan, prover: Certifier, splits: Splits, seconds: float
) -> dict[str, Any]:
    """The certificate of the trained model, and what made it."""
    loss = plan.loss_at(1.0)
    data = recipe.data.model_dump(mode="json")
    return {
        **describe(plan.model, prover, data, splits, recipe.certify.radii),
        "recipe": recipe.name,
        "seed": recipe.seed,
        "loss": {"name": recipe.loss.name, "eps": _number(loss, "eps"), "slack": _number(loss, "slack")},
        "k_hf": loss.whole_lipschitz(prover.k_f),
        "seconds": round(seconds, 1),
    }


def _number(loss: object, name: str) -> float | None:
    value = getattr(loss, name, None)
    return None if value is None else float(value)
