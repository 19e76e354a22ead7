"""The keys of a recipe. Every key is checked before anything is written or computed."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import nn

from lipcert.bounds.proof import Effort
from lipcert.certificates.certificate import Rounding
from lipcert.certificates.loading import load as load_model
from lipcert.certificates.local import balls_for
from lipcert.certificates.verification import Training
from lipcert.data.augmentations import AUGMENTATIONS, Augmentation
from lipcert.data.base import DATASETS, Dataset, Split, load
from lipcert.errors import InputError
from lipcert.losses import LOSSES, Loss
from lipcert.models import MODELS, ModelCard
from lipcert.models.model_files import start_from
from lipcert.recipes.signatures import checked_arguments
from lipcert.registry import Registry
from lipcert.runs.tightness import BudgetName
from lipcert.train.optimizers import OPTIMIZERS, MakeOptimizer
from lipcert.train.plan import scheduled
from lipcert.train.schedules import SCHEDULES, Schedule


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Component(BaseModel):
    """The name of a registered component, with its arguments beside it."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str

    @property
    def arguments(self) -> dict[str, Any]:
        """Return everything but the name."""
        return dict(self.model_extra or {})

    def check(self, registry: Registry[Any], where: str, *provided: str) -> dict[str, Any]:
        """Return the arguments, converted to the types of the registered constructor."""
        try:
            constructor = registry[self.name].constructor
        except InputError as error:
            raise InputError(f"{where}.name: {error}") from None
        return checked_arguments(constructor, self.arguments, set(provided), where)


class AugmentationComponent(Component):
    """An augmentation; the standard one need not be named."""

    name: str = "standard"


class TrainSettings(_Strict):
    """Settings of the training: its length, its pieces, its precision and threads."""

    epochs: int = Field(gt=0)
    batch_size: int = Field(gt=0)
    dtype: Literal["float32", "float64"] = "float32"
    threads: int | None = Field(default=None, gt=0)
    checkpoint_every: int = Field(default=1, gt=0)
    validate_every: int = Field(default=0, ge=0)
    augment: AugmentationComponent | None = None
    balanced: bool = False
    accumulate: int = Field(default=1, gt=0)
    clip: float | None = Field(default=None, gt=0)
    ema: float | None = Field(default=None, gt=0, lt=1)
    iterations: int = Field(default=5, gt=0)
    turns: int = Field(default=1, gt=0)
    local: float | None = Field(default=None, gt=0)
    channels_last: bool = False
    compile: bool = False


class CertifySettings(_Strict):
    """Settings of the proof at the end."""

    radii: tuple[float, ...] = Field(min_length=1)
    splits: tuple[Split, ...] = ("train", "val")
    rounding: Rounding = "float64"
    effort: Effort = "auto"
    local: bool = False
    tightness: BudgetName | None = None

    @model_validator(mode="after")
    def _radii_are_positive(self) -> CertifySettings:
        if not all(0 < r < float("inf") for r in self.radii):
            raise ValueError(f"expected radii > 0, got {list(self.radii)}")
        return self

    @property
    def balls(self) -> tuple[float, ...]:
        """Return the balls on which local bounds are proved, besides the global ones."""
        return balls_for(self.radii) if self.local else ()


class Recipe(_Strict):
    """One complete training, as `lipcert train` runs it."""

    name: str
    claim: str = ""
    seed: int = Field(default=1, ge=0)
    data: Component
    model: Component
    start: str | None = None  # a model whose weights to begin with; its head is kept only if it fits
    loss: Component
    optimizer: Component
    schedule: dict[str, Component] = Field(default_factory=dict)
    train: TrainSettings
    certify: CertifySettings

    def check(self) -> None:
        """Check names, arguments and values of every component; raise `InputError` with the key."""
        self.data.check(DATASETS, "data", "split")
        self.model.check(MODELS, "model", "num_classes", "input_shape")
        self.make_optimizer()([torch.nn.Parameter(torch.zeros(1))])
        loss = self.make_loss()
        self.make_augmentation()
        self.make_schedules()
        for key in self.schedule:
            self._check_target(key, loss)

    def make_data(self, split: Split) -> Dataset:
        """Load one split of the data."""
        arguments = self.data.check(DATASETS, "data", "split")
        data: Dataset = within("data", partial(load, self.data.name, split=split, **arguments))
        return data

    def make_card(self, data: Dataset) -> ModelCard:
        """Return the card of a model that fits the data."""
        return ModelCard(
            name=self.model.name,
            num_classes=len(data.classes),
            input_shape=data.input_shape,
            arguments=self.model.check(MODELS, "model", "num_classes", "input_shape"),
            classes=data.classes,
        )

    def make_model(self, card: ModelCard) -> nn.Module:
        """Build the architecture, initialised from the seed."""
        torch.manual_seed(self.seed)
        model: nn.Module = within("model", card.build)
        if self.start is not None:
            start_from(model, load_model(self.start), self.start)
        return model.to(getattr(torch, self.train.dtype))

    def make_optimizer(self) -> MakeOptimizer:
        """Return a function that makes the optimiser for given parameters."""
        arguments = self.optimizer.check(OPTIMIZERS, "optimizer", "parameters", "head")
        create = OPTIMIZERS[self.optimizer.name].constructor

        @wraps(create)  # keeps its signature, which shows whether it takes the head
        def make(*given: Any, **named: Any) -> torch.optim.Optimizer:
            optimizer: torch.optim.Optimizer = within(
                "optimizer", partial(create, *given, **named, **arguments)
            )
            return optimizer

        return make

    def make_augmentation(self) -> Augmentation | None:
        """Return what changes the training images; None if nothing does."""
        if self.train.augment is None:
            return None
        name, where = self.train.augment.name, "train.augment"
        arguments = self.train.augment.check(AUGMENTATIONS, where)
        made: Augmentation = within(where, partial(AUGMENTATIONS.create, name, **arguments))
        return made

    def make_loss(self) -> Loss:
        """Make the loss at its starting values."""
        arguments = self.loss.check(LOSSES, "loss")
        loss: Loss = within("loss", partial(LOSSES.create, self.loss.name, **arguments))
        return loss

    def final_loss(self) -> Loss:
        """Make the loss with its numbers at the end of training."""
        return scheduled(self.make_loss(), self.make_schedules(), 1.0)

    def stated_training(self) -> Training:
        """Return what a certificate states about this training."""
        return Training(self.name, self.seed, self.loss.name, self.final_loss())

    def make_schedules(self) -> dict[str, Schedule]:
        """Make the schedules, by the number they change."""
        return {
            key: within(
                f"schedule.{key}",
                partial(SCHEDULES.create, s.name, **s.check(SCHEDULES, f"schedule.{key}")),
            )
            for key, s in self.schedule.items()
        }

    def _check_target(self, key: str, loss: Loss) -> None:
        part, _, number = key.partition(".")
        if part == "loss":
            known = [f.name for f in dataclasses.fields(loss)]
            numeric = number in known and isinstance(getattr(loss, number), float | int)
        else:
            known = list(inspect.signature(OPTIMIZERS[self.optimizer.name].constructor).parameters)
            numeric = part == "optimizer" and number in known and number in ("lr", "weight_decay", "momentum")
        if not numeric:
            raise InputError(f"schedule.{key}: expected a number of the loss or the optimizer, like loss.eps")


def within(where: str, make: Callable[[], Any]) -> Any:
    """Run a constructor and prefix its complaint with the key it is about."""
    try:
        return make()
    except InputError as error:
        raise InputError(f"{where}.{error}") from None
