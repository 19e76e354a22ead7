"""Run a recipe: build, train, certify, write the run directory."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric

from lipcert.certificates.certificate import Certificate
from lipcert.certificates.certifier import Certifier
from lipcert.certificates.shards import Shard
from lipcert.certificates.verification import certify_data, describe
from lipcert.data import Dataset
from lipcert.data.base import Split
from lipcert.errors import InputError, TrainingError
from lipcert.models import ModelCard
from lipcert.progress import proving
from lipcert.recipes.schema import Recipe, within
from lipcert.recipes.splits import Splits
from lipcert.recipes.tightness_search import measure
from lipcert.runs import Run
from lipcert.runs.run_paths import stored_data
from lipcert.tables.kinds import shape_text
from lipcert.train import Hardware, Plan, fit, fit_stack
from lipcert.train.hardware import is_first_process, launch, shard_of, started
from lipcert.train.optimizers.decay import matching
from lipcert.train.stacked.checks import check_stack

Certified = dict[Split, tuple[Dataset, Certificate]]


def execute(
    recipe: Recipe,
    output: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    hardware: Hardware | None = None,
    splits: Splits | None = None,
    lines: bool = False,
) -> Run:
    """Train and certify; the directory holds everything that was found out, `splits` what was loaded.

    `lines` prints one line per epoch where stderr is not a terminal.
    """
    run, splits = Run(output), splits or Splits()
    tree = recipe.model_dump(mode="json")
    with _threads(recipe.train.threads), contextlib.ExitStack() as held:
        fabric = _suited(hardware, recipe).prepared()
        if is_first_process():
            run.check(
                tree, resume=resume, overwrite=overwrite
            )  # before the data is read, which may take long
        plan, card = build(recipe, splits)
        if is_first_process():
            held.enter_context(run.opened(tree, resume=resume, overwrite=overwrite))
            _announce(plan, lines)
        launch(fabric)
        fabric.barrier()  # no process looks into the directory before it is ready
        if not run.certificate.exists():
            seconds = fit(plan, run, fabric, lines=lines)
            _say("proving the bounds and certifying", lines and fabric.is_global_zero)
            _conclude(recipe, plan, card, run, seconds, fabric, splits)
        fabric.barrier()
        _measure_tightness(recipe, run, fabric, splits)
    return run


@contextlib.contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Set torch's number of threads inside this context, and restore it afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _announce(plan: Plan, lines: bool) -> None:
    """Describe the data on a terminal, or in a log."""
    if lines or sys.stderr.isatty():
        data = plan.train
        names = ", ".join(data.classes) if len(data.classes) <= 10 else f"{data.classes[0]}, …"
        samples = f"{len(data):,} training samples of {shape_text(data.input_shape)}"
        print(f"{samples}, {len(data.classes)} classes ({names})", file=sys.stderr, flush=True)


def _say(what: str, lines: bool) -> None:
    """Say in a log what goes on; a terminal shows it otherwise."""
    if lines and not sys.stderr.isatty():
        print(what, file=sys.stderr, flush=True)


def execute_stack(
    recipes: Mapping[Path, Recipe],
    *,
    resume: bool = False,
    overwrite: bool = False,
    hardware: Hardware | None = None,
    splits: Splits | None = None,
    lines: bool = False,
) -> list[Run]:
    """Train recipes that `check_alike` accepts as one, certify each; the directories are as `execute`'s."""
    runs = {Run(path): recipe for path, recipe in recipes.items()}
    with _threads(next(iter(recipes.values())).train.threads), contextlib.ExitStack() as held:
        splits = splits or Splits()
        chosen = [_suited(hardware, recipe) for recipe in recipes.values()]
        fabric = _launch_alone(chosen)
        trees = {run: recipe.model_dump(mode="json") for run, recipe in runs.items()}
        for run, tree in trees.items():  # all of them, before any is changed
            run.check(tree, resume=resume, overwrite=overwrite)
        built = {run: build(recipe, splits) for run, recipe in runs.items()}
        check_stack([plan for plan, _ in built.values()])
        for run, tree in trees.items():
            held.enter_context(run.opened(tree, resume=resume, overwrite=overwrite))
        try:
            _train_missing(runs, built, fabric, splits, lines)
        except TrainingError:  # one failed; the others are finished
            _measure_all(runs, fabric, splits)
            raise
        _measure_all(runs, fabric, splits)
    return list(runs)


def _suited(hardware: Hardware | None, recipe: Recipe) -> Hardware:
    """Return the hardware with the recipe's precision, unless the caller chose one."""
    hardware = hardware or Hardware()
    return hardware if hardware.precision != "32" else replace(hardware, precision=recipe.train.precision)


def _launch_alone(chosen: Sequence[Hardware]) -> Fabric:
    """Start the one process in which a stack trains, on the hardware that all its recipes choose."""
    hardware = chosen[0]
    devices, nodes = started(hardware.devices, hardware.nodes)
    if (str(devices), nodes) != ("1", 1):
        raise InputError("--stack: trains in one process; several share a single training")
    if any(each.precision != "32" for each in chosen):
        raise InputError("--stack: trains in full precision")
    return hardware.launch()


def _train_missing(
    runs: Mapping[Run, Recipe],
    built: Mapping[Run, tuple[Plan, ModelCard]],
    fabric: Fabric,
    splits: Splits,
    lines: bool,
) -> None:
    """Train and certify the runs that have no certificate yet."""
    missing = [run for run in runs if not run.certificate.exists()]

    def conclude(index: int, seconds: float) -> None:
        run = missing[index]
        _conclude(runs[run], *built[run], run, seconds, fabric, splits)

    if missing:
        _say(f"{len(missing)} trainings as one; the lines are about {missing[0].path.name}", lines)
        fit_stack([built[run][0] for run in missing], missing, fabric, conclude, lines)


def _measure_all(runs: Mapping[Run, Recipe], fabric: Fabric, splits: Splits) -> None:
    for run, recipe in runs.items():
        if run.certificate.exists():
            _measure_tightness(recipe, run, fabric, splits)


def build(recipe: Recipe, splits: Splits | None = None) -> tuple[Plan, ModelCard]:
    """Return the training a recipe describes, and its model card; `splits` keeps what was loaded."""
    splits = splits or Splits()
    train = splits.of(recipe, "train")
    card = recipe.make_card(train)
    model = recipe.make_model(card)
    within("optimizer", partial(matching, model, recipe.optimizer.no_decay))  # before anything is written
    parts: dict[str, Any] = {
        "model": model,
        "loss": recipe.make_loss(),
        "optimizer": recipe.make_optimizer(),
        "no_decay": recipe.optimizer.no_decay,
        "schedules": recipe.make_schedules(),
        "train": train,
        "val": splits.of(recipe, "val") if recipe.train.validate_every else None,
        "seed": recipe.seed,
    }
    settings = recipe.train.model_dump(exclude={"dtype", "precision", "threads", "augment"})
    settings["augmentation"] = recipe.make_augmentation()
    plan: Plan = within("train", partial(Plan, **parts, **settings))
    return plan, card


def _conclude(
    recipe: Recipe, plan: Plan, card: ModelCard, run: Run, seconds: float, fabric: Fabric, splits: Splits
) -> None:
    """Save the trained model, and what is proved about it."""
    if fabric.is_global_zero:
        run.save_model(plan.model, card)
    prover, certified = _certify(recipe, plan, shard_of(fabric), splits)
    if fabric.is_global_zero:
        radii, training = recipe.certify.radii, recipe.stated_training()
        data = stored_data(recipe.source, run.path)
        found = describe(plan.model, card, prover, data, certified, radii, training, round(seconds, 1))
        run.save_certificate(found, certified)


def _measure_tightness(recipe: Recipe, run: Run, fabric: Fabric, splits: Splits) -> None:
    """Measure tightness; all processes search."""
    if recipe.certify.tightness is not None:
        data = splits.of(recipe, "train")
        measure(run, recipe, data, recipe.certify.tightness, device=fabric.device, shard=shard_of(fabric))


def _certify(recipe: Recipe, plan: Plan, shard: Shard, splits: Splits) -> tuple[Certifier, Certified]:
    """Return the proof, and the certificate of every sample of the recipe's splits."""
    settings = recipe.certify
    shard.share(plan.model)
    with proving():
        prover = Certifier(plan.model.eval(), plan.train.input_shape, settings.effort, shard)
    data = {split: splits.of(recipe, split) for split in settings.splits}
    certify = partial(certify_data, prover, rounding=settings.rounding, shard=shard, local=settings.balls)
    return prover, {split: (samples, certify(samples)) for split, samples in data.items()}
