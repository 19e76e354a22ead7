"""What a certificate.json says, as typed data; and how strictly such a file is read.

A file that says anything more, anything twice, or anything of another kind is refused in one line.
"""

from __future__ import annotations

import json
import math
from decimal import ROUND_CEILING, Context, Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from lipcert.bounds.proof import Effort
from lipcert.certificates.certificate import Rounding
from lipcert.data.base import Split
from lipcert.errors import InputError

FORMAT = 2

# No certificate is longer: ten thousand layers take three megabytes.
_LONGEST = 1 << 24  # bytes

_MOST = 1 << 53  # samples: beyond, a float does not hold their number

# What is claimed lies at least this far above the proof, relatively. Proofs of one network on two machines
# differ by less: their sums round differently.
_ROOM = Decimal("1e-8")
_NINE_DIGITS = Context(prec=9, rounding=ROUND_CEILING)

Constant = Annotated[float, Field(ge=0)]  # from above
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Strict(BaseModel):
    """No other keys, no conversions (true is not 1), no NaN and no infinity."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Environment(_Strict):
    """Where the certificate was made: a note, not a claim."""

    lipcert: str
    commit: str | None
    python: str
    torch: str
    machine: str


class Architecture(_Strict):
    """The model card of the file with the weights."""

    name: str
    num_classes: int
    input_shape: list[int]
    arguments: dict[str, JsonValue]
    classes: list[str]


class Pairs(_Strict):
    """The constants K_ij of all pairs of classes, in three numbers."""

    smallest: Constant
    median: Constant
    largest: Constant


class Layer(_Strict):
    """One layer and its constant; the seconds of its proof are a note."""

    name: str
    path: str
    kind: str
    shape: list[int]
    upper: Constant
    prover: str
    seconds: float


class Accuracy(_Strict):
    """How many samples are correct and certified at a radius."""

    radius: float = Field(ge=0)
    count: int = Field(ge=0, le=_MOST)
    value: float
    interval: list[float] = Field(min_length=2, max_length=2)


class SplitAccuracies(_Strict):
    """One split of the data: its hash, its clean accuracy, and the certified ones."""

    sha256: Hash
    samples: int = Field(ge=1, le=_MOST)
    clean: Accuracy
    certified: list[Accuracy]

    @property
    def rows(self) -> list[Accuracy]:
        """The clean accuracy, then the certified ones."""
        return [self.clean, *self.certified]


class LossNumbers(_Strict):
    """The loss at the end of training; null for a number that it does not have."""

    name: str
    eps: float | None
    slack: float | None


class Statement(_Strict):
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
    data: dict[str, JsonValue]
    splits: dict[Split, SplitAccuracies] = Field(min_length=1)
    recipe: str | None = None
    seed: int | None = None
    loss: LossNumbers | None = None
    k_hf: Constant | None = None
    seconds: float | None = None  # of the training: a note

    @model_validator(mode="after")
    def _recipe_is_whole(self) -> Statement:
        parts = (self.recipe, self.seed, self.loss, self.k_hf)
        if any(part is None for part in parts) and any(part is not None for part in parts):
            raise ValueError("expected all of recipe, seed, loss and k_hf, or none")
        return self

    def to_json(self) -> dict[str, Any]:
        """As the file has it: keys without a value are left out."""
        return {key: value for key, value in self.model_dump(mode="json").items() if value is not None}


def claimed(name: str, proved: float) -> float:
    """Return what is claimed for a proved constant: nine digits, above every machine's proof.

    A constant that nine digits hold, such as 1, is the same on every machine and stays.

    Example:
        >>> claimed("k_f", 2.2503658982615403), claimed("k_f", 1.0)
        (2.25036593, 1.0)
    """
    found = proved
    if float(f"{proved:.8e}") != proved:
        found = float(_NINE_DIGITS.create_decimal(Decimal(proved) * (1 + _ROOM)))
    if not math.isfinite(found):
        raise InputError(f"{name}: expected a finite constant to certify with, got {found}")
    return found


def read_certificate(path: Path) -> Statement:
    """The certificate in a file, every key and every type checked."""
    tree = read_json(path)
    if tree.get("format") == 1:
        raise InputError(
            f"{path}: of format 1, expected {FORMAT}; `lipcert certify` writes a new certificate"
        )
    try:
        return Statement.model_validate(tree)
    except ValidationError as error:
        raise InputError(f"{path}: not a lipcert certificate ({_complaint(error)})") from None
    except RecursionError:
        raise InputError(f"{path}: not a lipcert certificate (nested too deeply)") from None


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; no key twice, no NaN, no infinity, no absurd size or nesting."""
    try:
        with path.open("rb") as file:
            content = file.read(_LONGEST + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if len(content) > _LONGEST:
        raise InputError(f"{path}: longer than {_LONGEST >> 20} MB, which no certificate is")
    try:
        tree = json.loads(
            content.decode(), object_pairs_hook=_without_twins, parse_constant=_finite, parse_float=_finite
        )
    except _AmbiguousError as error:
        raise InputError(f"{path}: {error}") from None
    except ValueError:
        raise InputError(f"{path}: cut short, or not JSON") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None
    if not isinstance(tree, dict):
        raise InputError(f"{path}: not a lipcert certificate")
    return tree


class _AmbiguousError(Exception):
    """JSON that readers may disagree about."""


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _AmbiguousError(f"the key {shown(key)} occurs twice")
        found[key] = value
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _AmbiguousError(f"expected finite numbers, got {shown(text)}")
    return value


def _complaint(error: ValidationError) -> str:
    """The key and what is wrong with it, of the first complaint."""
    first = error.errors(include_url=False)[0]
    key = shown(".".join(map(str, first["loc"])))
    known = {"extra_forbidden": "unknown key", "missing": "missing"}
    message = known.get(first["type"], str(first["msg"]).removeprefix("Value error, "))
    return f"{key}: {message[0].lower()}{message[1:]}" if key else message


def shown(text: str, most: int = 60) -> str:
    """Text from a file, safe to print: one line without control characters, `most` characters long."""
    plain = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: most + 1])
    return plain if len(plain) <= most else f"{plain[:most]}..."
