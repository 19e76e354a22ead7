"""A complete plan of one training: model, loss, optimiser, data, order and effort."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from lipcert.bounds.arguments import checked_count, checked_model
from lipcert.bounds.bounded import Estimate, check_turns
from lipcert.data import Dataset
from lipcert.data.augmentations import Augmentation
from lipcert.errors import InputError
from lipcert.losses import Loss
from lipcert.train.cadence import Every
from lipcert.train.division import check_division
from lipcert.train.placement import OnDevice
from lipcert.train.schedules import Schedule


def scheduled(loss: Loss, schedules: Mapping[str, Schedule], t: float) -> Loss:
    """Return a loss with its scheduled numbers at fraction t of the training."""
    numbers = {
        key.removeprefix("loss."): schedule(getattr(loss, key.removeprefix("loss.")), t)
        for key, schedule in schedules.items()
        if key.startswith("loss.")
    }
    return dataclasses.replace(loss, **numbers)


@dataclass(frozen=True)
class Plan:
    """Everything one training needs. `batch_size` is the total over all processes."""

    model: nn.Module
    loss: Loss
    optimizer: Callable[..., torch.optim.Optimizer]  # takes parameters, and `head` if it has such an argument
    train: Dataset
    epochs: int
    batch_size: int
    seed: int
    val: Dataset | None = None
    validate_every: int = 0  # epochs; 0: never
    checkpoint_every: Every = 1  # epochs; auto: as often as takes 2 % of the time
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    no_decay: Sequence[str] = ()  # patterns of the names of parameters without weight decay
    augmentation: Augmentation | None = None
    balanced: bool = False  # every class has the same weight, for any number of samples
    accumulate: int = 1  # pieces of a batch that are computed in turn
    clip: float | None = None  # largest norm of the gradient
    ema: float | None = None  # decay of the averaged weights
    local: float | None = None  # constants of balls of this radius, one per sample
    iterations: int = 5  # products with WᵀW for the estimated constants, whenever a layer has its turn
    turns: int = 1  # steps between two turns of a layer
    estimate: Estimate = "krylov"  # or "power", for which there is 1 turn, or "block"
    data_on_device: OnDevice = "auto"  # whether images live on the device as bytes; auto: if they fit
    channels_last: bool = False
    compile: bool = False

    def __post_init__(self) -> None:
        self._check_types()
        check_turns(self.estimate, self.turns)
        if self.batch_size > len(self.train):
            raise InputError(
                f"batch_size: {self.batch_size} is larger than the {len(self.train)} training samples"
            )
        if bool((self.train.y == self.train.y[0]).all()):
            name = self.train.classes[int(self.train.y[0])]
            raise InputError(f"data: every sample is of class {name!r}: nothing to learn")
        check_division(self.loss, self.model, self.batch_size, self.accumulate)
        images = self.train.x.dtype == torch.uint8 and self.train.x.ndim == 4
        if (self.augmentation is not None or self.channels_last) and not images:
            shape = tuple(self.train.x.shape)
            raise InputError(
                f"augment, channels_last: are for uint8 images, got {self.train.x.dtype} {shape}"
            )

    def _check_types(self) -> None:
        """Raise if an argument is of another kind; a recipe has checked its own before."""
        checked_model(self.model)
        kinds: dict[str, tuple[type, ...]] = {
            "loss": (Loss,),
            "train": (Dataset,),
            "val": (Dataset, type(None)),
        }
        for name, kind in kinds.items():
            if not isinstance(found := getattr(self, name), kind):
                what = "a loss" if name == "loss" else "a Dataset"
                raise InputError(f"{name}: expected {what} of lipcert, got {type(found).__name__}")
        if not callable(self.optimizer):
            found = type(self.optimizer).__name__
            raise InputError(f"optimizer: expected a function of the parameters, got {found}")
        for name in ("epochs", "batch_size", "accumulate", "turns", "iterations"):
            checked_count(name, getattr(self, name))
        for name in ("seed", "validate_every"):
            checked_count(name, getattr(self, name), least=0)

    @property
    def steps_per_epoch(self) -> int:
        """Count the optimiser steps of an epoch; its last batch may be smaller."""
        return math.ceil(len(self.train) / self.batch_size)

    @property
    def total_steps(self) -> int:
        """Count the steps of the whole training."""
        return self.epochs * self.steps_per_epoch

    def batches(self, epoch: int) -> tuple[Tensor, ...]:
        """Return the samples of each step, a function of seed and epoch alone, also after a resume."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
        order = torch.randperm(len(self.train), generator=generator)
        return torch.split(order, self.batch_size)

    def turn(self, step: int) -> tuple[int, int]:
        """Return which layers' vectors a step improves: the first, and the distance to the next.

        Blocks are improved all together, in steps where the first is 0; two values spare compilations.
        """
        if self.estimate == "block":
            return int(step % self.turns > 0), 2
        return step % self.turns, self.turns

    def class_weights(self) -> Tensor | None:
        """Return weights (N,) of mean 1 over the samples; None if classes are not balanced."""
        if not self.balanced:
            return None
        counts = self.train.y.bincount(minlength=len(self.train.classes)).double()
        present = (counts > 0).sum()
        return torch.where(counts > 0, len(self.train) / (present * counts.clamp_min(1)), 0.0)

    def loss_at(self, t: float) -> Loss:
        """Return the loss with its numbers at fraction t of the training."""
        return scheduled(self.loss, self.schedules, t)

    def optimizer_numbers(self, start: Mapping[str, float], t: float) -> dict[str, float]:
        """Return the scheduled numbers at fraction t for a parameter group that began with `start`."""
        names = [key.removeprefix("optimizer.") for key in self.schedules if key.startswith("optimizer.")]
        numbers = {
            name: self.schedules[f"optimizer.{name}"](start[name], t) for name in names if name in start
        }
        # Parameters without weight decay keep none, whatever a schedule makes of it.
        return numbers if start.get("decays", True) else {**numbers, "weight_decay": 0.0}
