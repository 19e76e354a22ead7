"""Certificates of inputs: constants are proved once, then any number of batches is certified."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from numbers import Real
from typing import get_args

import torch
from torch import Tensor, nn

from lipcert.bounds.arguments import checked_count, checked_model, checked_tensor
from lipcert.bounds.fidelity.kernels import AsksForKernels
from lipcert.bounds.precision import refuse_short_products
from lipcert.bounds.provers.summing import summing
from lipcert.certificates.certificate import Certificate, Rounding
from lipcert.certificates.local import local_bound
from lipcert.certificates.margins import Float64Evaluation
from lipcert.certificates.proved_model import ProvedModel
from lipcert.certificates.quick import QuickEvaluation, all_finite
from lipcert.certificates.radius import nearest_rival, rival_radii
from lipcert.certificates.shards import ALONE, Shard
from lipcert.errors import InputError
from lipcert.suggestions import expected_one_of
from lipcert.types import Effort


class Certifier:
    """Certifies batches with the constants in `proved`. Made by `certifier`."""

    def __init__(
        self,
        model: nn.Module,
        input_shape: Sequence[int],
        effort: Effort = "auto",
        shard: Shard = ALONE,
        device: str | torch.device | None = None,
    ) -> None:
        self.proved = ProvedModel(model, input_shape, effort, shard, device)
        self.float64 = Float64Evaluation(self.proved)
        self._quick = QuickEvaluation(self.proved)

    @property
    def k_f(self) -> float:
        """Return the largest K_ij, proved."""
        return self.proved.k_f

    @torch.no_grad()
    def logits(self, x: Tensor) -> Tensor:
        """Return the float64 logits that certificates are about: (B, N)."""
        self.proved.check(x)
        return self.float64.logits(x)

    @torch.no_grad()
    def rival_radii(self, x: Tensor) -> Tensor:
        """Return the radius within which no input gets class j: (B, N), infinite for the predicted class.

        Proved, float64 rounding included; the smallest of a finite sample is its certified radius.
        """
        self.proved.check(x)
        at_x = self.float64.margins(x, "float64")
        return rival_radii(at_x.margin, at_x.constants, at_x.top).clamp_min(0.0)

    @torch.no_grad()
    def __call__(
        self,
        x: Tensor,
        rounding: Rounding = "float64",
        batch_size: int = 4096,
        local: float | Sequence[float] = (),
    ) -> Certificate:
        """Return predictions and radii of a batch (B, ...), evaluated in float64 unless rounding is ignored.

        `local` names balls around each sample, on which units that are constant there count for nothing. The
        constants of a ball certify radii up to its own; the best of all is what a sample gets.
        """
        balls = _balls(local)
        self._check_request(rounding, balls)
        size = checked_count("batch_size", batch_size)
        self.proved.check(x)
        quick = rounding == "ignored" and not balls and self._quick.is_possible
        batch = self._quick if quick else partial(self._batch, rounding, balls)
        parts = [batch(piece) for piece in torch.split(x, size)]
        prediction, radius, rival = (torch.cat(column) for column in zip(*parts, strict=True))
        return Certificate(prediction, radius, rival, rounding, balls)

    def _check_request(self, rounding: Rounding, balls: tuple[float, ...]) -> None:
        if rounding not in get_args(Rounding):
            raise InputError(f"rounding: {expected_one_of(get_args(Rounding), rounding)}")
        if rounding == "float32" and not self.proved.is_float32:
            raise InputError(
                "rounding: float32 speaks of a network with float32 weights, this one has others"
            )
        if rounding != "float64":  # which is computed in float64, whatever the model runs in
            refuse_short_products(self.proved.model)
        if not all(0 < ball < math.inf for ball in balls):
            raise InputError(f"local: expected radii > 0, got {', '.join(map(str, balls))}")
        if balls and rounding == "float32":
            raise InputError("local: bounds on balls are for another rounding than float32")

    def _batch(
        self, rounding: Rounding, balls: tuple[float, ...], x: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        self._compare(x, rounding)
        x = x.detach().to(self.proved.where, torch.float64)
        at_x = self.float64.margins(x, rounding)
        radius, rival = nearest_rival(at_x.margin, at_x.constants, at_x.top)
        if at_x.limit is not None:
            radius = torch.minimum(radius, at_x.limit).clamp_min(0.0)
        for ball in balls:
            with summing(self.proved.where):
                local = local_bound(self.proved.features, self.proved.bound, x, ball).on_cpu()
            smaller = torch.minimum(at_x.constants, self.proved.head.local_constants(local, at_x.top))
            unsure = rival_radii(at_x.margin, smaller, at_x.top) < ball
            ahead = self.proved.head.stays_ahead(local, at_x.margin, at_x.top, unsure)
            smaller = torch.where(ahead, 0.0, smaller)  # this rival is out of reach, as far as the ball goes
            here, nearest = nearest_rival(at_x.margin, smaller, at_x.top)
            better = here.clamp_max(ball) > radius
            radius = torch.where(better, here.clamp_max(ball), radius)
            rival = torch.where(better, nearest, rival)
        finite = all_finite(at_x.logits)
        radius = torch.where(finite & all_finite(x).cpu(), radius, 0.0)
        return torch.where(finite, at_x.top, -1), radius, rival

    def _compare(self, x: Tensor, rounding: Rounding) -> None:
        """Compare what the model computes with what was proved, on some of the samples."""
        if rounding == "float32":
            with AsksForKernels([len(x)]):
                self.proved.replay.compare(x, least=0.0)
        else:
            self.proved.replay.compare(x)


def _balls(local: float | Sequence[float]) -> tuple[float, ...]:
    """Return the radii of balls: one number, several, or none."""
    given = tuple(local) if isinstance(local, Iterable) and not isinstance(local, str) else (local,)
    if not all(isinstance(ball, Real) for ball in given):
        raise InputError(f"local: expected a radius or a list of radii, got {local!r}")
    return tuple(float(ball) for ball in given)


def certifier(
    model: nn.Module,
    input_shape: Sequence[int],
    effort: Effort = "auto",
    device: str | torch.device | None = None,
) -> Certifier:
    """Prove the Lipschitz constants of a model once; the result certifies any number of inputs.

    Large products of the proof and float64 evaluations are computed on `device`, by default the model's.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2, bias=False))
        >>> _ = model[0].weight.data.copy_(torch.eye(2))
        >>> certificate = certifier(model, input_shape=(2,))(torch.tensor([[3.0, 1.0]]))
        >>> certificate.prediction, certificate.radius  # 2/√2, rounded down
        (tensor([0]), tensor([1.4142], dtype=torch.float64))
    """
    return Certifier(model, input_shape, effort, device=device)


def certify(model: nn.Module, x: Tensor, rounding: Rounding = "float64") -> Certificate:
    """Prove and certify in one call."""
    model, shape = checked_model(model), checked_tensor("x", x).shape
    if len(shape) < 2:
        raise InputError(f"x: expected a batch of samples (B, ...), got shape {tuple(shape)}")
    return Certifier(model, shape[1:])(x, rounding)
