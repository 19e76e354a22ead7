"""Certificates: for every prediction a radius within which no input gets another one.

$$ r(x) = \\min_{j \\ne i} \\frac{f_i(x) - f_j(x)}{K_{ij}}, \\qquad i = \\arg\\max f(x) $$

over ALL rivals j (the runner-up alone is not enough), with proved constants K, and, by default, less
everything float64 may have lost on the way to the logits.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from lipcert.bounds.bounded import binary_as_two, binary_rows, checked_classes
from lipcert.bounds.contract import refuse_global_hooks, refuse_tampering, refuse_unsettled, sample_norm
from lipcert.bounds.graph import trace
from lipcert.bounds.proof import Bound, Effort, prove
from lipcert.bounds.rounding import SAFETY, TINY, TINY32, TINY_ROOT, U, gamma
from lipcert.errors import InputError, LipcertWarning, StaleBoundError
from lipcert.evaluation import FLOAT32, LONGEST, Deployed, Evaluation, evaluate, no_overflow, plain
from lipcert.hashing import tensors_checksum
from lipcert.local_bound import Local, local_bound
from lipcert.nn.derived import Derived
from lipcert.precision import refuse_reduced_precision
from lipcert.shards import ALONE, Shard
from lipcert.types import pairwise_distance

Rounding = Literal["float64", "float32", "ignored"]

# The evaluation radii of the field.
RADII = (36 / 255, 72 / 255, 108 / 255)

# Kinds of attributes that are settings of a layer.
_PLAIN = (bool, int, float, str, tuple, type(None))


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
        refuse_reduced_precision(model)
        self._float32 = all(p.dtype == torch.float32 for p in model.parameters())
        self._model = model
        self._fingerprint = _fingerprint(model)
        program = trace(_frozen_copy(model), input_shape)
        for step in program.steps:
            if isinstance(getattr(step.module, "inplace", None), bool):
                setattr(step.module, "inplace", False)  # noqa: B010  a layer's input is needed after it
        self.classes = max(checked_classes(program), 2)
        self.input_shape = tuple(input_shape)
        self.effort = effort
        self._features, head = program.split_head()
        self._head = _Head.linear(head) if head is not None else _Head.identity(self.classes)
        if head is None:
            warnings.warn(
                "the last layer is not linear: every pair of classes gets the bound of the whole "
                "model times √2, which is looser",
                LipcertWarning,
                stacklevel=3,
            )
        # One process proves, so that all certify with the same bits.
        proof = prove(self._features, effort) if shard.index == 0 else None
        self.bound: Bound = shard.first(proof)
        self.pairs = _product_up(self._head.spread, self.bound.value)  # (N, N) proved K_ij
        # For where rounding is ignored.
        self._overwrites = any(getattr(module, "inplace", False) for module in model.modules())
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
        return self._head(plain(self._features, x.detach().to("cpu", torch.float64)))

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
        if rounding == "float32" and not self._float32:
            raise InputError(
                "rounding: float32 speaks of a network with float32 weights, this one has others"
            )
        balls = (float(local),) if isinstance(local, float | int) else tuple(map(float, local))
        if not all(0 < ball < math.inf for ball in balls):
            raise InputError(f"local: expected radii > 0, got {local}")
        if balls and rounding == "float32":
            raise InputError("local: bounds on balls are for another rounding than float32")
        self._check(x)
        quick = rounding == "ignored" and not balls and self._distinct
        batch = self._quickly if quick else partial(self._batch, rounding, balls)
        parts = [batch(x[i : i + batch_size]) for i in range(0, len(x), batch_size)]
        prediction, radius, rival = (torch.cat(column) for column in zip(*parts, strict=True))
        return Certificate(prediction, radius, rival, rounding, balls)

    def _check(self, x: Tensor) -> None:
        """Raise unless the model is still the one that the proof is about, and these are inputs of it."""
        refuse_reduced_precision(self._model)
        refuse_global_hooks()
        for path, module in self._model.named_modules():
            refuse_tampering(path or "model", module)
        if _fingerprint(self._model) != self._fingerprint:
            raise StaleBoundError("the model changed after the proof: make a new certifier")
        if tuple(x.shape[1:]) != self.input_shape:
            raise InputError(
                f"x: expected shape (B, {', '.join(map(str, self.input_shape))}), got {tuple(x.shape)}"
            )
        if len(x) == 0:
            raise InputError("x: expected at least one sample")
        if not x.is_floating_point():
            raise InputError(f"x: expected floating-point inputs, got {x.dtype}")

    def _quickly(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """By the model as it runs, in its own precision: hardly more than its forward pass."""
        example = next(self._model.parameters(), x)
        trusted = _all_finite(x).cpu()
        inputs = x.detach().to(example, copy=self._overwrites)
        logits = binary_as_two(self._model(inputs)).cpu()  # (B, N)
        best, top = logits.max(dim=1)
        constants = self._rounded_pairs[top]  # (B, N)
        radius = (best[:, None] - logits).div_(constants).scatter_(1, top[:, None], torch.inf)
        nearest, rival = radius.min(dim=1)
        finite = _all_finite(logits)
        trusted &= torch.isfinite(best - logits.amin(dim=1))  # which is NaN or infinite if any logit is
        return torch.where(finite, top, -1), torch.where(trusted, nearest, 0.0).double(), rival

    def _batch(
        self, rounding: Rounding, balls: tuple[float, ...], x: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = x.detach().to("cpu", torch.float64)
        if rounding == "ignored":
            at_x = Evaluation(plain(self._features, x), x.new_zeros(len(x)))
        else:
            at_x = evaluate(self._features, self.bound, x, float32=rounding == "float32")
        logits = self._head(at_x.features)  # (B, N)
        top = logits.argmax(dim=1)  # (B,)
        margin, constants = self._head.margin(logits, top), self.pairs[top]  # (B, N)
        if rounding != "ignored":
            margin = margin - self._head.margin_error(at_x, top, margin)
        if at_x.deployed is not None:
            lost, growing = self._head.float32_error(at_x, at_x.deployed, top)
            margin, constants = margin - lost, constants + growing
        radius, rival = _radius(margin, constants, top)
        if at_x.deployed is not None:
            radius = torch.minimum(radius, self._head.float32_limit(at_x, at_x.deployed)).clamp_min(0.0)
        for ball in balls:
            local = local_bound(self._features, self.bound, x, ball)
            smaller = torch.minimum(constants, self._head.local_constants(local, top))
            here, nearest = _radius(margin, smaller, top)
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


@dataclass(frozen=True)
class _Head:
    """The last layer in float64: logits, and how far a difference of two may be off.

    A sum of d products and a bias has d + 1 roundings; one more for rows that are rounded when they are made.
    """

    rows: Tensor  # (N, D)
    bias: Tensor  # (N,)
    spread: Tensor  # (N, N) ‖w_i − w_j‖, from above
    layer: nn.Module

    @classmethod
    def linear(cls, layer: nn.Linear) -> _Head:
        bias = layer.weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias
        rows = binary_rows(layer.weight.detach())
        padding = rows.shape[0] - bias.shape[0]  # one logit f stands for [0, f]
        return cls(rows, torch.cat([bias.new_zeros(padding), bias.detach()]), _pairs_upper(rows), layer)

    @classmethod
    def identity(cls, classes: int) -> _Head:
        eye = torch.eye(classes, dtype=torch.float64)
        return cls(eye, eye.new_zeros(classes), _pairs_upper(eye), nn.Identity())

    def __call__(self, features: Tensor) -> Tensor:
        return binary_as_two(self.layer(features))

    def margin(self, logits: Tensor, top: Tensor) -> Tensor:
        """f_i − f_j for i = top: (B, N). Equal rows differ by their biases alone, however rounded."""
        computed = logits.gather(1, top[:, None]) - logits
        known = self.bias[top][:, None] - self.bias
        same = (self.spread[top] == 0) & torch.isfinite(computed)
        return torch.where(same, known, computed)

    def margin_error(self, at_x: Evaluation, top: Tensor, margin: Tensor) -> Tensor:
        r"""How far each computed f_i − f_j may be above the exact one: (B, N).

        $$ e_{ij} = \|w_i - w_j\| E + \gamma_{d+2} [(|w_i| + |w_j|)|x| + |b_i| + |b_j|] + 4u|f_i - f_j| $$

        Four units for the difference of the logits and that of margin and error.
        """
        dot = gamma(self.length + 2) * self._sizes(at_x.features, top) + (self.length + 1) * TINY
        return SAFETY * (self.spread[top] * at_x.error[:, None] + dot + 4 * U * margin.abs())

    def float32_error(self, at_x: Evaluation, deployed: Deployed, top: Tensor) -> tuple[Tensor, Tensor]:
        r"""What float32 may take from a margin anywhere within r: a_ij + b_ij·r, both (B, N).

        $$ \|w_i - w_j\| E^{32} + \gamma^{32}_{d+2} [(|w_i|+|w_j|)|x| + |b_i|+|b_j|
           + (\|w_i\|+\|w_j\|)(E + Pr + E^{32})], \qquad E^{32} = a + br $$
        """
        if self.length > LONGEST:
            raise InputError(f"the head sums {self.length} products, more than float32 certificates cover")
        unit = FLOAT32 * gamma(self.length + 2)
        spread, lengths = self.spread[top], self.lengths[top][:, None] + self.lengths  # (B, N)
        a, b = deployed.a[:, None], deployed.b[:, None]
        underflow = 2 * (self.length + 1) * TINY32
        lost = spread * a + unit * (self._sizes(at_x.features, top) + lengths * (at_x.error[:, None] + a))
        growing = spread * b + unit * lengths * (deployed.lipschitz + b)
        return SAFETY * (lost + underflow), SAFETY * growing

    def float32_limit(self, at_x: Evaluation, deployed: Deployed) -> Tensor:
        """Within which distance no float32 number overflows: (B,)."""
        longest = self.lengths.max()
        size = at_x.features.abs() @ self.rows.abs().amax(0) + self.bias.abs().max()
        size = size + longest * (at_x.error + deployed.a)
        return torch.minimum(deployed.limit, no_overflow(size, longest * (deployed.lipschitz + deployed.b)))

    def local_constants(self, local: Local, top: Tensor) -> Tensor:
        """K_ij of every sample's ball for i = top, from the features that move there: (B, N)."""
        moving = local.active if local.active.shape[1] == self.length else local.active.new_ones(())
        squares = [((self.rows[top] - row) ** 2 * moving).sum(1) for row in self.rows]
        spread = torch.stack(squares, dim=1).sqrt() * (1 + (self.length + 16) * U)
        return (spread + self.length * TINY_ROOT) * local.constant[:, None] * (1 + 4 * U)

    @property
    def length(self) -> int:
        """D."""
        return self.rows.shape[1]

    @property
    def lengths(self) -> Tensor:
        """‖w_i‖, from above: (N,)."""
        return SAFETY * sample_norm(self.rows)

    def _sizes(self, features: Tensor, top: Tensor) -> Tensor:
        """(|w_i| + |w_j|)·|x| + |b_i| + |b_j| for i = top: (B, N)."""
        if features.shape[1] != self.length:
            features = binary_as_two(features)  # a single logit without a linear head
        size = features.abs() @ self.rows.abs().T + self.bias.abs()
        return size + size.gather(1, top[:, None])


def _radius(margin: Tensor, constants: Tensor, top: Tensor) -> tuple[Tensor, Tensor]:
    """The smallest margin/K over all rivals, rounded down, and the rival: both (B,)."""
    # K = 0 with a positive margin: the difference is constant, no input can change the prediction.
    free = torch.where(margin > 0, torch.inf, 0.0).to(margin)
    radius = torch.where(
        constants == 0, free, torch.nextafter(margin / constants, margin.new_tensor(-torch.inf))
    )
    radius = radius.scatter(1, top[:, None], torch.inf)  # a class is not its own rival
    nearest, rival = radius.nan_to_num(nan=0.0, posinf=torch.inf, neginf=0.0).min(dim=1)
    trusted = torch.isfinite(margin).all(dim=1) & torch.isfinite(constants).all(dim=1)
    return torch.where(trusted, nearest.clamp_min(0.0), 0.0), rival


def _all_finite(x: Tensor) -> Tensor:
    """Whether every number of a sample is: (B,)."""
    flat = x.flatten(1)
    total = torch.isfinite(flat.sum(1))  # then every summand is
    return total if bool(total.all()) else torch.isfinite(flat).all(1)


def _pairs_upper(rows: Tensor) -> Tensor:
    """‖w_i − w_j‖₂ from above, in float64: (N, N)."""
    _, d = rows.shape
    peak = float(rows.abs().max())
    if peak == 0:
        return rows.new_zeros(rows.shape[0], rows.shape[0])
    # A power of two near the largest entry keeps the squares from overflow and underflow.
    scale = 2.0 ** max(min(math.frexp(peak)[1], 1000), -1000)
    distance = scale * pairwise_distance(rows / scale, rows / scale)
    same = (distance == 0) & _equal_rows(rows)
    return torch.where(same, 0.0, distance * (1 + (d + 16) * U) + d * TINY_ROOT * scale)


def _equal_rows(rows: Tensor) -> Tensor:
    """Whether rows i and j are the same numbers: (N, N)."""
    kind: Tensor = torch.unique(rows, dim=0, return_inverse=True)[1]
    return kind[:, None] == kind


def _product_up(spread: Tensor, features: float) -> Tensor:
    """spread·features from above; 0 only where a factor is."""
    product = spread * (features * (1 + 4 * U))
    product = torch.nextafter(product, product.new_tensor(torch.inf))
    return torch.where((spread == 0) | (features == 0), 0.0, product)


def _frozen_copy(model: nn.Module) -> nn.Module:
    """What the certificate speaks of: float64, its weights settled, out of the reach of later training."""
    for path, module in model.named_modules():
        refuse_unsettled(path, module)
        if isinstance(module, Derived):
            module.forget()  # what is certified is what runs from now on, whoever wrote to it
    frozen = copy.deepcopy(model)
    # Weights that are computed are settled in the precision they run in, and widened then.
    for module in list(frozen.modules()):
        if isinstance(module, Derived):
            module.remember_precision()
        if parametrize.is_parametrized(module):
            _settle(module)
    return frozen.to("cpu", torch.float64)


def _settle(module: nn.Module) -> None:
    """Turn parametrised weights of a copied module into ordinary ones."""
    shared = type(module)  # torch takes the weight from the class, which the copy shares with its original
    members = {k: v for k, v in vars(shared).items() if k not in ("__dict__", "__weakref__")}
    module.__class__ = type(shared.__name__, shared.__bases__, members)
    for name in list(cast(nn.ModuleDict, module.parametrizations)):
        parametrize.remove_parametrizations(module, name, leave_parametrized=True)


def _fingerprint(model: nn.Module) -> tuple[str, str, tuple[str, ...]]:
    """Changes with any weight, setting or mode of the model."""
    # Buffers that are not saved count as well, so not from the state_dict.
    tensors = tensors_checksum(dict([*model.named_parameters(), *model.named_buffers()]))
    return tensors, repr(model), tuple(_settings(module) for module in model.modules())


def _settings(module: nn.Module) -> str:
    """All plain attributes, for those that print does not show; `training` is one."""
    plain = {k: v for k, v in vars(module).items() if not k.startswith("_") and isinstance(v, _PLAIN)}
    return repr(sorted(plain.items()))


__all__ = [
    "RADII",
    "Certificate",
    "CertifiedAccuracy",
    "Certifier",
    "certified_accuracy",
    "certifier",
    "certify",
]
