"""Checks of stacks: which trainings can be one, and which single one is quicker as a stack of one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn.modules.dropout import _DropoutNd

from lipcert.errors import InputError
from lipcert.train.plan import Plan
from lipcert.train.stacked.networks import is_dense
from lipcert.train.state import Training

# What the plans of a stack have in common.
_COMMON = (
    "epochs",
    "batch_size",
    "accumulate",
    "clip",
    "ema",
    "iterations",
    "turns",
    "balanced",
    "augmentation",
)


def check_stack(plans: Sequence[Plan]) -> None:
    """Raise if these cannot be trained as one."""
    first = plans[0]
    if len(plans) > 1 and not _is_elementwise(_optimizer_of(first)):
        raise InputError("--stack: the optimiser must be Adam, AdamW or SGD, with the same numbers for all")
    for plan in plans[1:]:
        if _architecture(plan) != _architecture(first):
            raise InputError("--stack: the models must be of one architecture and precision")
        if _optimizer_numbers(plan) != _optimizer_numbers(first):
            raise InputError(
                "--stack: the optimiser, its numbers and their schedules must be the same for all"
            )
        if (plan.train.classes, plan.train.x.dtype) != (first.train.classes, first.train.x.dtype):
            raise InputError("--stack: the data of all must have the same classes and type")
        for name in _COMMON:
            if getattr(plan, name) != getattr(first, name):
                raise InputError(
                    f"--stack: train.{name} must be the same for all, got {_two(name, first, plan)}"
                )
        if len(plan.train) != len(first.train) or plan.train.input_shape != first.train.input_shape:
            raise InputError("--stack: the data of all must have equally many samples of the same shape")
    for plan in plans:
        _refuse_single(plan)
    if len(plans) > 1 and any(isinstance(module, _DropoutNd) for module in first.model.modules()):
        raise InputError("--stack: models with dropout draw from one generator; train them one by one")


def _refuse_single(plan: Plan) -> None:
    """Raise if a plan asks for what only single trainings have."""
    settings = {
        "train.compile": plan.compile,
        "train.local": plan.local is not None,
        f"train.estimate: {plan.estimate}": plan.estimate != "krylov",
        "optimizer.no_decay": bool(plan.no_decay),
    }
    for setting, asked in settings.items():
        if asked:
            raise InputError(f"--stack: {setting} is for single trainings")


def is_stackable(training: Training) -> bool:
    """Return whether a stack of one trains it as well and faster: an MLP, in one process."""
    plan, fabric = training.plan, training.fabric
    alone = fabric.world_size == 1 and fabric.strategy.precision.precision == "32-true"
    plain = not plan.compile and plan.local is None and not plan.channels_last and plan.estimate == "krylov"
    return alone and plain and _is_elementwise(training.optimizer) and is_dense(training.bounded)


def _optimizer_of(plan: Plan) -> torch.optim.Optimizer:
    return plan.optimizer(list(plan.model.parameters()))


def _is_elementwise(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether it does the same to every number, in whatever tensors they come."""
    known = (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD)
    return type(optimizer) in known and len(optimizer.param_groups) == 1


def _optimizer_numbers(plan: Plan) -> list[object]:
    optimizer = _optimizer_of(plan)
    groups = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    schedules = {k: repr(v) for k, v in plan.schedules.items() if k.startswith("optimizer.")}
    return [type(optimizer), groups, schedules]


def _architecture(plan: Plan) -> list[object]:
    return [repr(plan.model), [(p.shape, p.dtype, p.requires_grad) for p in plan.model.parameters()]]


def _two(name: str, one: Plan, other: Plan) -> str:
    return f"{getattr(one, name)!r} and {getattr(other, name)!r}"
