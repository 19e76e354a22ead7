"""The keys of a recipe. Every key is checked before anything is written or computed."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, partial, wraps
from typing import Annotated, Any, ClassVar, Literal, get_args

import torch
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)
from torch import nn

from lipcert.bounds.bounded import Estimate, check_turns, usual_iterations
from lipcert.certificates.certificate import Rounding
from lipcert.certificates.loading import load as load_model
from lipcert.certificates.local import balls_for
from lipcert.certificates.statement import DataSource
from lipcert.certificates.verification import Training
from lipcert.data.augmentations import AUGMENTATIONS, Augmentation
from lipcert.data.base import DATASETS, Dataset, Split, load
from lipcert.errors import InputError
from lipcert.losses import LOSSES, Loss
from lipcert.models import MODELS, ModelCard
from lipcert.models.model_files import start_from
from lipcert.recipes.expectations import numbers_only
from lipcert.recipes.imports import Import
from lipcert.recipes.signatures import checked_arguments
from lipcert.registry import Registry
from lipcert.suggestions import meant_key
from lipcert.tables.kinds import parsed_radius
from lipcert.train.hardware import Precision
from lipcert.train.optimizers import OPTIMIZERS, MakeOptimizer
from lipcert.train.plan import scheduled
from lipcert.train.schedule_checks import check_schedules
from lipcert.train.schedules import SCHEDULES, Schedule
from lipcert.types import BudgetName, Effort


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    _numbers = field_validator("*", mode="wrap")(numbers_only)


class _Later(BaseModel):
    """Keys that came later are not written at their defaults, so that older runs still match and resume."""

    later: ClassVar[tuple[str, ...]] = ()

    @model_serializer(mode="wrap")
    def _write(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        default = {key for key in self.later if getattr(self, key) == fields[key].default}
        return {key: value for key, value in write(self).items() if key not in default}


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


class OptimizerComponent(Component, _Later):
    """An optimiser; parameters whose names match a pattern of `no_decay` have no weight decay."""

    later = ("no_decay",)
    no_decay: tuple[str, ...] = ()


def _as_text(value: Any) -> Any:
    """Read 32, which YAML takes for a number."""
    return str(value) if type(value) is int else value


class TrainSettings(_Strict, _Later):
    """Settings of the training: its length, its pieces, its precision and threads."""

    later = ("estimate", "data_on_device", "precision")
    epochs: int = Field(gt=0)
    batch_size: int = Field(gt=0)
    dtype: Literal["float32", "float64"] = "float32"
    precision: Annotated[Precision, BeforeValidator(_as_text)] = "32"
    threads: int | None = Field(default=None, gt=0)
    checkpoint_every: Annotated[int, Field(gt=0)] | Literal["auto"] = 1
    validate_every: int = Field(default=0, ge=0)
    augment: AugmentationComponent | None = None
    balanced: bool = False
    accumulate: int = Field(default=1, gt=0)
    clip: float | None = Field(default=None, gt=0)
    ema: float | None = Field(default=None, gt=0, lt=1)
    iterations: int = Field(default=5, gt=0)
    turns: int = Field(default=1, gt=0)
    estimate: Estimate = "krylov"
    local: float | None = Field(default=None, gt=0)
    data_on_device: Literal["auto"] | bool = "auto"
    channels_last: bool = False
    compile: bool = False

    @model_validator(mode="after")
    def _precision_fits(self) -> TrainSettings:
        if self.dtype == "float64" and self.precision != "32":
            raise InputError(f"precision: expected 32 with dtype float64, got {self.precision}")
        return self

    @model_validator(mode="before")
    @classmethod
    def _usual_iterations(cls, given: Any) -> Any:
        """Let blocks make one product per step, unless the recipe says otherwise."""
        if not isinstance(given, Mapping) or "iterations" in given or given.get("estimate") != "block":
            return given
        return {**given, "iterations": usual_iterations("block")}


def _radius(value: Any) -> Any:
    """Read a fraction such as 36/255, which YAML takes for a text."""
    return parsed_radius(value) if isinstance(value, str) else value


class CertifySettings(_Strict):
    """Settings of the proof at the end."""

    radii: tuple[Annotated[float, BeforeValidator(_radius)], ...] = Field(min_length=1)
    splits: tuple[Split, ...] = ("train", "val")
    rounding: Rounding = "float64"
    effort: Effort = "auto"
    local: bool = False
    tightness: BudgetName | None = None

    @field_validator("splits")
    @classmethod
    def _splits_are_there(cls, splits: tuple[Split, ...]) -> tuple[Split, ...]:
        if not splits:
            raise ValueError(f"expected at least one of {', '.join(get_args(Split))} to certify")
        return splits

    @field_validator("radii")
    @classmethod
    def _check_radii(cls, radii: tuple[float, ...]) -> tuple[float, ...]:
        if not all(0 < r < float("inf") for r in radii):
            raise ValueError(f"expected radii > 0, got {list(radii)}")
        return radii

    @property
    def balls(self) -> tuple[float, ...]:
        """Return the balls on which local bounds are proved, besides the global ones."""
        return balls_for(self.radii) if self.local else ()


@dataclasses.dataclass(frozen=True)
class CheckedArguments:
    """The arguments of every component of a recipe, converted to the types of their constructors."""

    data: Mapping[str, Any]
    model: Mapping[str, Any]
    optimizer: Mapping[str, Any]
    loss: Mapping[str, Any]
    augmentation: Mapping[str, Any]
    schedules: Mapping[str, Mapping[str, Any]]  # by the number they change


class Recipe(_Strict, _Later):
    """One complete training, as `lipcert train` runs it."""

    later = ("budget", "imports")
    name: str
    claim: str = ""
    imports: tuple[Import, ...] = ()  # code of one's own that must be loaded
    budget: str | None = None  # which one it was read with; None: full, or not recorded
    seed: int = Field(default=1, ge=0, lt=2**32)
    data: Component
    model: Component
    start: str | None = None  # a model whose weights to begin with; its head is kept only if it fits
    loss: Component
    optimizer: OptimizerComponent
    schedule: dict[str, Component] = Field(default_factory=dict)
    train: TrainSettings
    certify: CertifySettings

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise ValueError(f"expected a name for a directory, without /, got {name!r}")
        return name

    @cached_property
    def arguments(self) -> CheckedArguments:
        """Return the arguments of all components; they are checked when they are first asked for."""
        augment = self.train.augment
        return CheckedArguments(
            data=self.data.check(DATASETS, "data", "split"),
            model=self.model.check(MODELS, "model", "num_classes", "input_shape"),
            optimizer=self.optimizer.check(OPTIMIZERS, "optimizer", "parameters", "head"),
            loss=self.loss.check(LOSSES, "loss"),
            augmentation={} if augment is None else augment.check(AUGMENTATIONS, "train.augment"),
            schedules={key: s.check(SCHEDULES, f"schedule.{key}") for key, s in self.schedule.items()},
        )

    def check(self) -> None:
        """Check names, arguments and values of every component; raise `InputError` with the key."""
        optimizer = self.make_optimizer()([nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(2, 2))])
        loss = self.make_loss()
        self.make_augmentation()
        schedules = self.make_schedules()
        within("train", partial(check_turns, self.train.estimate, self.train.turns))
        self._check_validation()
        for key in self.schedule:
            self._check_target(key, loss, optimizer)
        for group in optimizer.param_groups:
            check_schedules(loss, group, schedules)

    def make_data(self, split: Split) -> Dataset:
        """Load one split of the data."""
        keys = inspect.signature(DATASETS[self.data.name].constructor).parameters
        make = partial(load, self.data.name, split=split, **self.arguments.data)
        data: Dataset = within("data", make, keys)
        return data

    @property
    def source(self) -> DataSource:
        """Return the data as a certificate names it."""
        return DataSource.model_validate(self.data.model_dump(mode="json"))

    def make_card(self, data: Dataset) -> ModelCard:
        """Return the card of a model that fits the data."""
        return ModelCard(
            name=self.model.name,
            num_classes=len(data.classes),
            input_shape=data.input_shape,
            arguments=self.arguments.model,
            classes=data.classes,
        )

    def make_model(self, card: ModelCard) -> nn.Module:
        """Build the architecture, initialised from the seed."""
        torch.manual_seed(self.seed)
        model: nn.Module = within("model", card.build)
        if self.start is not None:
            start_from(model, load_model(self.start), self.start, card)
        return model.to(getattr(torch, self.train.dtype))

    def make_optimizer(self) -> MakeOptimizer:
        """Return a function that makes the optimiser for given parameters."""
        arguments = self.arguments.optimizer
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
        made: Augmentation = within(where, partial(AUGMENTATIONS.create, name, **self.arguments.augmentation))
        return made

    def make_loss(self) -> Loss:
        """Make the loss at its starting values."""
        loss: Loss = within("loss", partial(LOSSES.create, self.loss.name, **self.arguments.loss))
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
                partial(SCHEDULES.create, s.name, **self.arguments.schedules[key]),
            )
            for key, s in self.schedule.items()
        }

    def _check_validation(self) -> None:
        """Raise if something asks for the validation split of data that holds none out."""
        if self.data.arguments.get("val") != 0:
            return
        none = "there is no validation split, because data.val is 0"
        if self.train.validate_every:
            raise InputError(f"train.validate_every: expected 0, got {self.train.validate_every}: {none}")
        if "val" in self.certify.splits:
            splits = [split for split in self.certify.splits if split != "val"] or ["test"]
            raise InputError(f"certify.splits: expected [{', '.join(splits)}], found val: {none}")

    def _check_target(self, key: str, loss: Loss, optimizer: torch.optim.Optimizer) -> None:
        """Raise unless a schedule can change this number: one of the loss, or of the optimiser's groups."""
        fields = [f.name for f in dataclasses.fields(loss)]
        known = [f"loss.{name}" for name in fields if _is_number(getattr(loss, name))]
        for name in inspect.signature(OPTIMIZERS[self.optimizer.name].constructor).parameters:
            starts = [group[name] for group in optimizer.param_groups if name in group]
            known += [f"optimizer.{name}"] if any(map(_is_number, starts)) else []
        if key not in known:
            guess = meant_key(key, known)
            raise InputError(
                f"schedule.{key}: expected a number of the loss or the optimizer, like loss.eps{guess}"
            )


def _is_number(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)


def within(where: str, make: Callable[[], Any], keys: Collection[str] | None = None) -> Any:
    """Run a constructor and prefix its complaint with the key it is about.

    A complaint that begins with one of `keys`, or with any word where they are not given, is about a key
    inside of this one; others begin with a file.
    """
    try:
        return make()
    except InputError as error:
        text = str(error)
        first = re.match(r"\w+(?=[:,])", text)
        if first and first[0] == where:
            raise
        inside = first is not None and (keys is None or first[0] in keys)
        raise InputError(f"{where}{'.' if inside else ': '}{text}") from None
