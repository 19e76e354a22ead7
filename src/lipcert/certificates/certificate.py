"""Certificates: for every prediction a radius within which no input gets another one.

The formula is in radius.py. Its constants are proved, and its margins are, by default, less everything
float64 may have lost on the way to the logits.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from lipcert.bounds.bounded import binary_as_two, checked_classes
from lipcert.bounds.evaluation import Evaluation, evaluate, joined, plain
from lipcert.bounds.fidelity.followed import Followed
from lipcert.bounds.fidelity.guards import refuse_tampering_anywhere
from lipcert.bounds.fidelity.kernels import AsksForKernels, refuse_flushed_denormals
from lipcert.bounds.fidelity.replay import Replay
from lipcert.bounds.precision import refuse_half_precision, refuse_short_products
from lipcert.bounds.proof import Bound, Effort, prove
from lipcert.bounds.provers.rounding import U
from lipcert.certificates.head import Head
from lipcert.certificates.local import local_bound
from lipcert.certificates.radius import nearest_quickly, nearest_rival
from lipcert.certificates.shards import ALONE, Shard
from lipcert.errors import InputError, LipcertWarning, StaleBoundError

Rounding = Literal["float64", "float32", "ignored"]

# The evaluation radii of the field.
RADII = (36 / 255, 72 / 255, 108 / 255)

# Numbers of inputs that fill a cache, and of weights that are worth another sample at a time.
_CACHED, _WEIGHTS_A_SAMPLE = 1 << 16, 1 << 17


@dataclass(frozen=True)
class Certificate:
    """Predictions with certified L2 radii; radius 0 means not certified at all."""

    prediction: Tensor  # (B,); -1 where a logit is not finite
    radius: Tensor  # (B,) float64
    rival: Tensor  # (B,) the class whose boundary limits the radius
    rounding: Rounding
    balls: tuple[float, ...] = ()  # on which local bounds were proved besides the global ones

    def at(self, eps: float) -> Tensor:
        """Whether no input within `eps` gets another prediction: (B,), strict."""
        if not eps >= 0:
            raise InputError(f"eps: expected a number >= 0, got {eps}")
        return self.radius > eps


@dataclass(frozen=True)
class CertifiedAccuracy:
    """How many samples are right and certified at a radius, with a 95 % binomial interval."""

    radius: float
    count: int
    total: int
    interval: tuple[float, float]

    @property
    def value(self) -> float:
        """The fraction."""
        return self.count / self.total


class Certifier:
    """Proves the constants of a model once, then certifies batches. Made by `certifier`."""

    def __init__(
        self, model: nn.Module, input_shape: Sequence[int], effort: Effort = "auto", shard: Shard = ALONE
    ) -> None:
        refuse_tampering_anywhere(model)
        refuse_half_precision(model)
        refuse_flushed_denormals(all_threads=True)
        self.is_float32 = all(p.dtype == torch.float32 for p in model.parameters())
        self._model = model
        followed = Followed.of(model, input_shape)
        program = followed.program
        self.classes = max(checked_classes(program), 2)
        self.input_shape = followed.input_shape
        self.effort = effort
        self.features, head = program.split_head()
        self.head = Head.linear(head) if head is not None else Head.identity(self.classes)
        if head is None:
            warnings.warn(
                "the last layer is not linear: every pair of classes gets the bound of the whole "
                "model times √2, which is looser",
                LipcertWarning,
                stacklevel=3,
            )
        # One process proves, so that all certify with the same bits.
        proof = prove(self.features, effort) if shard.index == 0 else None
        self.bound: Bound = shard.first(proof)
        self._replay = Replay(followed, self.bound)
        self._snapshot = self._replay.rehearse()
        self.growths = self._replay.growths[: len(self.features.steps)]
        self.pairs = _product_up(self.head.spread, self.bound.value)  # (N, N) proved K_ij
        # Convolutions in float64 are products with patches written out: a few images fill a cache. Rounding
        # looks at all weights once a piece, so many of them want larger pieces.
        weights = sum(p.numel() for p in model.parameters())
        self._piece = max(16, _CACHED // math.prod(self.input_shape), weights // _WEIGHTS_A_SAMPLE)
        # Torch's float64 convolutions are faster with channels last, which others' layers may not expect.
        known = all(type(s.module).__module__.split(".")[0] in ("torch", "lipcert") for s in program.steps)
        self._layout = (
            torch.channels_last if known and len(self.input_shape) == 3 else torch.contiguous_format
        )
        # For where rounding is ignored; layers may have others inside.
        inside = any(getattr(module, "inplace", False) for module in model.modules())
        self._overwrites = program.overwrites or inside
        self._rounded_pairs = self.pairs.to(next(model.parameters(), self.pairs).dtype)
        apart = self._rounded_pairs[~torch.eye(self.classes, dtype=torch.bool)]
        self._distinct = bool(((apart > 0) & (apart < torch.inf)).all())

    @property
    def k_f(self) -> float:
        """The largest K_ij, proved."""
        return float(self.pairs.max())

    @torch.no_grad()
    def logits(self, x: Tensor) -> Tensor:
        """The float64 logits that certificates are about: (B, N)."""
        self._check(x)
        return self.head(self.evaluated(x, "ignored").features)

    @torch.no_grad()
    def __call__(
        self,
        x: Tensor,
        rounding: Rounding = "float64",
        batch_size: int = 4096,
        local: float | Sequence[float] = (),
    ) -> Certificate:
        """Predictions and radii of a batch (B, ...), evaluated in float64 unless rounding is ignored.

        `local` names balls around each sample, on which units that are constant there count for nothing. The
        constants of a ball certify radii up to its own; the best of all is what a sample gets.
        """
        if rounding not in get_args(Rounding):
            raise InputError(f"rounding: expected one of {', '.join(get_args(Rounding))}, got {rounding!r}")
        if rounding == "float32" and not self.is_float32:
            raise InputError(
                "rounding: float32 speaks of a network with float32 weights, this one has others"
            )
        if rounding != "float64":  # which is computed in float64 on the CPU, whatever the model runs on
            refuse_short_products(self._model)
        balls = (float(local),) if isinstance(local, float | int) else tuple(map(float, local))
        if not all(0 < ball < math.inf for ball in balls):
            raise InputError(f"local: expected radii > 0, got {local}")
        if balls and rounding == "float32":
            raise InputError("local: bounds on balls are for another rounding than float32")
        if batch_size < 1:
            raise InputError(f"batch_size: expected a number >= 1, got {batch_size}")
        self._check(x)
        quick = rounding == "ignored" and not balls and self._distinct
        batch = self._quickly if quick else partial(self._batch, rounding, balls)
        parts = [batch(piece) for piece in torch.split(x, batch_size)]
        prediction, radius, rival = (torch.cat(column) for column in zip(*parts, strict=True))
        return Certificate(prediction, radius, rival, rounding, balls)

    def _check(self, x: Tensor) -> None:
        """Raise unless the model is still the one that the proof is about, and these are inputs of it."""
        refuse_half_precision(self._model)
        refuse_flushed_denormals()
        refuse_tampering_anywhere(self._model)
        if tuple(x.shape[1:]) != self.input_shape:
            raise InputError(
                f"x: expected shape (B, {', '.join(map(str, self.input_shape))}), got {tuple(x.shape)}"
            )
        if len(x) == 0:
            raise InputError("x: expected at least one sample")
        if not x.is_floating_point():
            raise InputError(f"x: expected floating-point inputs, got {x.dtype}")
        changed = self._replay.change_since(self._snapshot)
        if changed is not None:
            raise StaleBoundError(f"{changed}: the model changed after the proof: make a new certifier")

    def _quickly(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """By the model as it runs, in its own precision: hardly more than its forward pass."""
        example = next(self._model.parameters(), x)
        trusted = _all_finite(x).cpu()
        inputs = x.detach().to(example, copy=self._overwrites)
        outputs = self._replay.outputs(inputs)
        self._replay.compare_outputs(x, outputs)
        logits = binary_as_two(outputs).cpu()  # (B, N)
        best, top = logits.max(dim=1)
        margin, constants = best[:, None] - logits, self._rounded_pairs[top]  # (B, N)
        nearest, rival = nearest_quickly(margin, constants, top)
        finite = _all_finite(logits)
        trusted &= torch.isfinite(best - logits.amin(dim=1))  # which is NaN or infinite if any logit is
        return torch.where(finite, top, -1), torch.where(trusted, nearest, 0.0).double(), rival

    @torch.no_grad()
    def evaluated(self, x: Tensor, rounding: Rounding = "float64") -> Evaluation:
        """The float64 features that certificates are about, with their errors."""
        x = x.detach().to("cpu", torch.float64, memory_format=self._layout)
        pieces = torch.split(x, self._piece)
        if rounding == "ignored":
            features = torch.cat([plain(self.features, piece) for piece in pieces])
            return Evaluation(features, x.new_zeros(len(x)))
        float32 = rounding == "float32"
        known = () if float32 else self.growths  # what float32 loses is worth a second look
        return joined([evaluate(self.features, self.bound, p, float32, growths=known) for p in pieces])

    def _batch(
        self, rounding: Rounding, balls: tuple[float, ...], x: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        if rounding == "float32":
            with AsksForKernels([len(x)]):
                self._replay.compare(x, least=0.0)
        else:
            self._replay.compare(x)
        x = x.detach().to("cpu", torch.float64)
        at_x = self.evaluated(x, rounding)
        logits = self.head(at_x.features)  # (B, N)
        top = logits.argmax(dim=1)  # (B,)
        margin, constants = self.head.margin(logits, top), self.pairs[top]  # (B, N)
        if rounding != "ignored":
            margin = margin - self.head.margin_error(at_x, top, margin)
        if at_x.deployed is not None:
            lost, growing = self.head.float32_error(at_x, at_x.deployed, top)
            margin, constants = margin - lost, constants + growing
        radius, rival = nearest_rival(margin, constants, top)
        if at_x.deployed is not None:
            radius = torch.minimum(radius, self.head.float32_limit(at_x, at_x.deployed)).clamp_min(0.0)
        for ball in balls:
            local = local_bound(self.features, self.bound, x, ball)
            smaller = torch.minimum(constants, self.head.local_constants(local, top))
            here, nearest = nearest_rival(margin, smaller, top)
            better = here.clamp_max(ball) > radius
            radius = torch.where(better, here.clamp_max(ball), radius)
            rival = torch.where(better, nearest, rival)
        finite = _all_finite(logits)
        radius = torch.where(finite & _all_finite(x), radius, 0.0)
        return torch.where(finite, top, -1), radius, rival


def certifier(model: nn.Module, input_shape: Sequence[int], effort: Effort = "auto") -> Certifier:
    """Prove the Lipschitz constants of a model once; the result certifies any number of inputs.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2, bias=False))
        >>> _ = model[0].weight.data.copy_(torch.eye(2))
        >>> certificate = certifier(model, input_shape=(2,))(torch.tensor([[3.0, 1.0]]))
        >>> certificate.prediction, certificate.radius  # 2/√2, rounded down
        (tensor([0]), tensor([1.4142], dtype=torch.float64))
    """
    return Certifier(model, input_shape, effort)


def certify(model: nn.Module, x: Tensor, rounding: Rounding = "float64") -> Certificate:
    """Prove and certify in one call."""
    return Certifier(model, x.shape[1:])(x, rounding)


def certified_accuracy(
    certificate: Certificate, labels: Tensor, radii: Sequence[float] = RADII
) -> list[CertifiedAccuracy]:
    """CRA at every radius: right and certified. Radius 0 gives the clean accuracy.

    Example:
        >>> c = Certificate(torch.tensor([0, 1]), torch.tensor([0.5, 0.1]), torch.tensor([1, 0]), "float64")
        >>> [a.value for a in certified_accuracy(c, torch.tensor([0, 1]), radii=[0, 0.2])]
        [1.0, 0.5]
    """
    if labels.shape != certificate.prediction.shape:
        raise InputError(
            f"labels: expected {len(certificate.prediction)} of them, got shape {tuple(labels.shape)}"
        )
    if len(labels) == 0:
        raise InputError("labels: expected at least one sample")
    if any(not 0 <= r < math.inf for r in radii):
        raise InputError(f"radii: expected numbers >= 0, got {list(radii)}")
    right = certificate.prediction == labels.cpu()
    counts = [int((right & (certificate.at(r) if r else right)).sum()) for r in radii]
    return [
        CertifiedAccuracy(r, count, len(labels), binomial_interval(count, len(labels)))
        for r, count in zip(radii, counts, strict=True)
    ]


def binomial_interval(count: int, total: int) -> tuple[float, float]:
    """Clopper-Pearson, 95 %: quantiles of two beta distributions."""
    from scipy.special import betaincinv  # takes a tenth of a second to load

    low = betaincinv(count, total - count + 1, 0.025) if count else 0.0
    high = betaincinv(count + 1, total - count, 0.975) if count < total else 1.0
    return float(low), float(high)


def _all_finite(x: Tensor) -> Tensor:
    """Whether every number of a sample is: (B,)."""
    flat = x.flatten(1)
    total = torch.isfinite(flat.sum(1))  # then every summand is
    return total if bool(total.all()) else torch.isfinite(flat).all(1)


def _product_up(spread: Tensor, features: float) -> Tensor:
    """spread·features from above; 0 only where a factor is."""
    product = spread * (features * (1 + 4 * U))
    product = torch.nextafter(product, product.new_tensor(torch.inf))
    return torch.where((spread == 0) | (features == 0), 0.0, product)


__all__ = [
    "RADII",
    "Certificate",
    "CertifiedAccuracy",
    "Certifier",
    "certified_accuracy",
    "certifier",
    "certify",
]
