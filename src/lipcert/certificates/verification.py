"""Make a certificate as typed data, and check one again.

The file names the model, and the hashes of the weights and the data. It gives every layer's bound, and the
certified accuracies with their counts. `verify` proves and counts again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.bounds.proof import LayerBound
from lipcert.bounds.provers.convolutions import PROVERS
from lipcert.bounds.provers.proof_cache import fresh_proofs
from lipcert.certificates.certificate import (
    Certificate,
    CertifiedAccuracy,
    Rounding,
    binomial_interval,
    certified_accuracy,
)
from lipcert.certificates.certifier import Certifier, certifier
from lipcert.certificates.shards import ALONE, Shard
from lipcert.certificates.statement import (
    FORMAT,
    Accuracy,
    Architecture,
    DataSource,
    Layer,
    LossNumbers,
    Pairs,
    SplitAccuracies,
    Statement,
    claimed,
)
from lipcert.data import Dataset
from lipcert.data.base import Split
from lipcert.environment import environment
from lipcert.hashing import tensors_sha256
from lipcert.losses import Loss
from lipcert.models import ModelCard
from lipcert.progress import tracked
from lipcert.strict_files import shown
from lipcert.types import Effort

# Samples certified at once.
_BATCH = 512

# Ends of intervals are rounded outwards to this many parts of 1: scipy's last bits differ between versions.
_PARTS = 10**9


@dataclass(frozen=True)
class Training:
    """The training of a certificate: the recipe's name, the seed, and the loss at the end."""

    recipe: str
    seed: int
    loss_name: str
    loss: Loss

    @property
    def numbers(self) -> LossNumbers:
        """Return the loss as a certificate names it."""
        return LossNumbers(name=self.loss_name, eps=self._number("eps"), slack=self._number("slack"))

    def _number(self, name: str) -> float | None:
        value = getattr(self.loss, name, None)
        return None if value is None else float(value)

    def stated(self, k_f: float, effort: Effort) -> dict[str, Any]:
        """Return a certificate's fields about the training, K_hf included."""
        k_hf = claimed("k_hf", self.loss.whole_lipschitz(k_f), effort)
        return {"recipe": self.recipe, "seed": self.seed, "loss": self.numbers, "k_hf": k_hf}


def describe(
    model: nn.Module,
    card: ModelCard,
    prover: Certifier,
    source: DataSource,
    splits: Mapping[Split, tuple[Dataset, Certificate]],
    radii: Sequence[float],
    training: Training | None = None,
    seconds: float | None = None,
) -> Statement:
    """State what was certified about the splits of the data that `source` names.

    Claimed constants are a little larger than the proved ones, see `claimed`. Radii and counts use the proof
    itself, so they hold.
    """
    ((rounding, balls),) = {(certificate.rounding, certificate.balls) for _, certificate in splits.values()}
    effort = prover.proved.effort
    stated: dict[str, Any] = {} if training is None else training.stated(prover.k_f, effort)
    return Statement(
        format=FORMAT,
        environment=environment(),
        model=architecture(card),
        model_sha256=tensors_sha256(model.state_dict()),
        rounding=rounding,
        local=list(balls),
        effort=effort,
        k_features=claimed("k_features", prover.proved.bound.value),
        k_f=claimed("k_f", prover.k_f, effort),
        pairs=Pairs(**{name: claimed("K_ij", value, effort) for name, value in _summary(prover).items()}),
        layers=[_layer(bound) for bound in prover.proved.bound.layers],
        data=source,
        splits={name: _accuracies(*parts, radii) for name, parts in splits.items()},
        **stated,
        seconds=seconds,
    )


def architecture(card: ModelCard) -> Architecture:
    """Return the model card as the file with the weights has it."""
    return Architecture.model_validate(json.loads(json.dumps(asdict(card))))


def _layer(bound: LayerBound) -> Layer:
    """State a proved layer with the constant that is claimed for it."""
    return Layer(
        name=bound.name,
        path=bound.path,
        kind=bound.kind,
        shape=list(bound.shape),
        upper=claimed(bound.path, bound.upper),
        prover=bound.prover,
        seconds=bound.seconds,
    )


def _summary(prover: Certifier) -> dict[str, float]:
    """Summarise the proved constants K_ij of all pairs of classes in three numbers."""
    off_diagonal = ~torch.eye(prover.proved.classes, dtype=torch.bool)
    pairs = prover.proved.pairs[off_diagonal]
    return {"smallest": float(pairs.min()), "median": float(pairs.median()), "largest": float(pairs.max())}


def certify_data(
    prover: Certifier,
    data: Dataset,
    rounding: Rounding = "float64",
    shard: Shard = ALONE,
    local: Sequence[float] = (),
) -> Certificate:
    """Certify every sample in batches; several processes share the samples, and all get the whole."""
    mine = shard.mine(torch.arange(len(data)))
    batches = torch.split(mine, _BATCH)
    shown = tracked(batches, "certifying", quiet=len(batches) < 4 or shard.index > 0)
    parts = [prover(data.floats(batch), rounding, local=local) for batch in shown if len(batch)]

    def column(name: str, kind: torch.dtype) -> Tensor:
        own = torch.cat([torch.zeros(0, dtype=kind), *(getattr(part, name) for part in parts)])
        return shard.gathered(own, mine, len(data))

    return Certificate(
        column("prediction", torch.int64),
        column("radius", torch.float64),
        column("rival", torch.int64),
        rounding,
        tuple(local),
    )


def _accuracies(data: Dataset, certificate: Certificate, radii: Sequence[float]) -> SplitAccuracies:
    clean, *certified = certified_accuracy(certificate, data.y, [0.0, *radii])
    return SplitAccuracies(
        sha256=tensors_sha256({"x": data.x, "y": data.y}),
        samples=len(data),
        clean=_row(clean),
        certified=[_row(c) for c in certified],
    )


def _row(accuracy: CertifiedAccuracy) -> Accuracy:
    return Accuracy(
        radius=accuracy.radius,
        count=accuracy.count,
        value=accuracy.value,
        interval=_interval(accuracy.count, accuracy.total),
    )


def _interval(count: int, total: int) -> list[float]:
    low, high = binomial_interval(count, total)
    return [math.floor(low * _PARTS) / _PARTS, math.ceil(high * _PARTS) / _PARTS]


@dataclass(frozen=True)
class Check:
    """One statement of a certificate: True if it holds, False if not, None if it was not checked.

    A note, such as where the certificate was made, is no claim and is never checked.
    """

    statement: str
    holds: bool | None
    is_claim: bool = True

    @property
    def is_unchecked(self) -> bool:
        """Return whether this is a claim that was not checked."""
        return self.is_claim and self.holds is None


def verify(
    claim: Statement,
    model: nn.Module,
    card: ModelCard,
    training: Training | None,
    splits: Mapping[Split, Dataset],
) -> list[Check]:
    """Prove the bounds again from the weights, and count again on the given splits.

    A constant holds if the new proof is at most the claimed one; everything else has to be equal.
    """
    return list(_checks(claim, model, card, training, splits))


def _checks(
    claim: Statement,
    model: nn.Module,
    card: ModelCard,
    training: Training | None,
    splits: Mapping[Split, Dataset],
) -> Iterator[Check]:
    same_weights = tensors_sha256(model.state_dict()) == claim.model_sha256
    yield Check("the weights are those of the certificate", same_weights)
    yield from _card_checks(claim.model, architecture(card))
    with fresh_proofs():
        prover = certifier(model, card.input_shape, claim.effort)
    yield from _bound_checks(claim, prover)
    yield from _training_checks(claim, training, prover.k_f)
    for name, split in claim.splits.items():
        yield Check(f"{name}: values and intervals follow from the counts", _consistent(split))
        if name in splits:
            yield from _count_checks(name, split, claim, prover, card, splits[name])
        else:
            yield Check(f"{name}: counts", None)
    yield Check("environment, seconds and the folder of the data", None, is_claim=False)


def _card_checks(theirs: Architecture, mine: Architecture) -> Iterator[Check]:
    yield Check("the class names are those of the model file", theirs.classes == mine.classes)
    # Compared as text: for Python, 1, 1.0 and True are equal.
    mine, theirs = (card.model_copy(update={"classes": []}) for card in (mine, theirs))
    same = json.dumps(mine.model_dump(), sort_keys=True) == json.dumps(theirs.model_dump(), sort_keys=True)
    yield Check("the architecture is that of the model file", same)


def _bound_checks(claim: Statement, prover: Certifier) -> Iterator[Check]:
    layers = prover.proved.bound.layers
    pairs = list(zip(layers, claim.layers, strict=False))
    alike = all(_outline(a) == _outline(b) and _proves_as(a.prover, b.prover) for a, b in pairs)
    same = alike and len(layers) == len(claim.layers)
    yield Check("the layers are those of the certificate", same)
    for mine, theirs in pairs:
        yield _at_most(f"{mine.path}: K", mine.upper, theirs.upper)
    yield _at_most("k_features", prover.proved.bound.value, claim.k_features)
    yield _at_most("k_f", prover.k_f, claim.k_f)
    for name, value in _summary(prover).items():
        yield _at_most(f"the {name} K_ij", value, getattr(claim.pairs, name))


def _outline(layer: Layer | LayerBound) -> tuple[str, str, str, tuple[int, ...]]:
    """Return everything about a layer but its proof."""
    return layer.name, layer.path, layer.kind, tuple(layer.shape)


def _proves_as(mine: str, theirs: str) -> bool:
    """Return whether two provers are the same, or the first proves the bound of the second by other means."""
    return mine == theirs or (mine in PROVERS and PROVERS.create(mine).replaces == theirs)


def _at_most(name: str, proved: float, claim: float) -> Check:
    """Check a constant: any claim below the proof fails; one above it is weaker, but true."""
    return Check(f"{name} ≤ {claim!r}", proved <= claim)


def _training_checks(claim: Statement, training: Training | None, k_f: float) -> Iterator[Check]:
    if claim.recipe is None or claim.loss is None or claim.k_hf is None:
        return  # no statement about the training
    numbers = "".join(
        f", {name} {value!r}"
        for name, value in (("ε", claim.loss.eps), ("slack", claim.loss.slack))
        if value is not None
    )
    made = f"made by the recipe {shown(claim.recipe)}, seed {shown(str(claim.seed))}"
    loss = f"with the loss {shown(claim.loss.name)}{numbers}"
    if training is None:
        yield from (Check(statement, None) for statement in (made, loss, "k_hf, which depends on the loss"))
        return
    yield Check(made, (claim.recipe, claim.seed) == (training.recipe, training.seed))
    yield Check(loss, claim.loss == training.numbers)
    yield _at_most("k_hf", training.loss.whole_lipschitz(k_f), claim.k_hf)


def _count_checks(
    name: str, split: SplitAccuracies, claim: Statement, prover: Certifier, card: ModelCard, data: Dataset
) -> Iterator[Check]:
    if card.classes:
        yield Check(f"{name}: the class names are those of the data", card.classes == data.classes)
    certificate = certify_data(prover, data, claim.rounding, local=claim.local)
    again = _accuracies(data, certificate, [row.radius for row in split.certified])
    yield Check(f"{name}: the data is that of the certificate", again.sha256 == split.sha256)
    for row, counted in zip(split.rows, again.rows, strict=True):
        statement = f"{name}: {row.count} of {split.samples} at radius {row.radius!r}"
        yield Check(statement, row.count == counted.count and split.samples == again.samples)


def _consistent(split: SplitAccuracies) -> bool:
    total = split.samples
    return split.clean.radius == 0 and all(
        row.count <= total and row.value == row.count / total and row.interval == _interval(row.count, total)
        for row in split.rows
    )
