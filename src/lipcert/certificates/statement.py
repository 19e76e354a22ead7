"""The content of a certificate.json as typed data. This is the only reader and writer of such files."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field, JsonValue, model_validator

from lipcert.atomic import write_json
from lipcert.certificates.certificate import Rounding
from lipcert.data.base import Split
from lipcert.environment import Environment
from lipcert.errors import InputError
from lipcert.models.trained import CERTIFICATE
from lipcert.strict_files import Hash, Strict, read_json, validated
from lipcert.types import Effort

FORMAT = 2

_WHAT = "a lipcert certificate"

_MOST = 1 << 53  # samples: a float cannot represent larger counts

# The claimed constant lies at least this far above the proof, relatively. Proofs of one network on two
# machines differ by less, because their sums round differently.
_ROOM = Decimal("1e-8")

# The same for constants of multipliers: steps that find these may end a little elsewhere on another machine.
_ROOM_OF_SEARCH = Decimal("1e-4")
_NINE_DIGITS = Context(prec=9, rounding=ROUND_CEILING)

Constant = Annotated[float, Field(ge=0)]  # from above


class Architecture(Strict):
    """The model card of the file with the weights."""

    name: str
    num_classes: int
    input_shape: list[int]
    arguments: dict[str, JsonValue]
    classes: list[str]


class DataSource(Strict):
    """The name of a registered data set, with its arguments beside it."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, JsonValue]
    name: str


class Pairs(Strict):
    """The constants K_ij of all pairs of classes, in three numbers."""

    smallest: Constant
    median: Constant
    largest: Constant


class Layer(Strict):
    """One layer and its constant; the seconds of its proof are a note."""

    name: str
    path: str
    kind: str
    shape: list[int]
    upper: Constant
    prover: str
    seconds: float


class Accuracy(Strict):
    """The number of samples that are correct and certified at a radius."""

    radius: float = Field(ge=0)
    count: int = Field(ge=0, le=_MOST)
    value: float
    interval: list[float] = Field(min_length=2, max_length=2)


class SplitAccuracies(Strict):
    """One split of the data: its hash, its clean accuracy, and the certified ones."""

    sha256: Hash
    samples: int = Field(ge=1, le=_MOST)
    clean: Accuracy
    certified: list[Accuracy]

    @property
    def rows(self) -> list[Accuracy]:
        """Return the clean accuracy, then the certified ones."""
        return [self.clean, *self.certified]


class LossNumbers(Strict):
    """The loss at the end of training; null for a number that it does not have."""

    name: str
    eps: float | None
    slack: float | None


class Statement(Strict):
    """Everything a certificate.json says. What a recipe is needed for may be absent, all of it."""

    format: int = Field(ge=FORMAT, le=FORMAT)
    environment: Environment
    model: Architecture
    model_sha256: Hash
    rounding: Rounding
    local: list[Annotated[float, Field(gt=0)]]
    effort: Effort
    k_features: Constant
    k_f: Constant
    pairs: Pairs
    layers: list[Layer]
    data: DataSource
    splits: dict[Split, SplitAccuracies] = Field(min_length=1)
    recipe: str | None = None
    seed: int | None = None
    loss: LossNumbers | None = None
    k_hf: Constant | None = None
    seconds: float | None = None  # how long the training took: a note

    @model_validator(mode="after")
    def _recipe_is_whole(self) -> Statement:
        parts = (self.recipe, self.seed, self.loss, self.k_hf)
        if any(part is None for part in parts) and any(part is not None for part in parts):
            raise ValueError("expected all of recipe, seed, loss and k_hf, or none")
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the content of the file; keys without a value are left out."""
        return {key: value for key, value in self.model_dump(mode="json").items() if value is not None}


class TrainedStatement(Statement):
    """The certificate of a training: what a recipe is needed for is there."""

    recipe: str
    seed: int
    loss: LossNumbers
    k_hf: Constant


AnyStatement = TypeVar("AnyStatement", bound=Statement)


def claimed(name: str, proved: float, effort: Effort = "auto") -> float:
    """Return the claim for a proved constant: nine digits, above the proof of every machine.

    `effort="tight"` leaves more room, for constants K_ij from multipliers. A constant that nine digits
    represent exactly, such as 1, stays the same on every machine.

    Example:
        >>> claimed("k_f", 2.2503658982615403), claimed("k_f", 1.0)
        (2.25036593, 1.0)
    """
    found = proved
    if float(f"{proved:.8e}") != proved:
        room = _ROOM_OF_SEARCH if effort == "tight" else _ROOM
        found = float(_NINE_DIGITS.create_decimal(Decimal(proved) * (1 + room)))
    if not math.isfinite(found):
        raise InputError(f"{name}: expected a finite constant to certify with, got {found}")
    return found


def read_certificate(path: Path) -> Statement:
    """Return the certificate in a file, every key and every type checked."""
    return _read(path, Statement)


def read_trained_certificate(path: Path) -> TrainedStatement:
    """Return the certificate in a file; one that tells nothing of a training is refused."""
    return _read(path, TrainedStatement)


def find_certificate(place: Path) -> Statement | None:
    """Return the certificate in a directory, None if it has none."""
    path = place / CERTIFICATE
    return read_certificate(path) if path.is_file() else None


def write_certificate(path: Path, statement: Statement) -> None:
    """Write a certificate, all or nothing; missing folders on the way to it are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, statement.to_json())


def _read(path: Path, kind: type[AnyStatement]) -> AnyStatement:
    tree = read_json(path, _WHAT)
    if tree.get("format") == 1:
        raise InputError(
            f"{path}: of format 1, expected {FORMAT}; remove it, then `lipcert certify` writes a new one"
        )
    return validated(path, tree, kind, _WHAT)
