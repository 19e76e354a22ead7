"""The target of an attack: a network as it runs, samples, and their certificates."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import torch
from torch import Tensor, nn

from lipcert.bounds.bounded import binary_as_two
from lipcert.bounds.fidelity.followed import example_of
from lipcert.bounds.precision import double_device
from lipcert.certificates.certificate import Rounding
from lipcert.certificates.certifier import Certifier
from lipcert.errors import InputError

# Constant networks have an infinite radius; attacks stop at this distance.
FARTHEST = 1e6


@dataclass(frozen=True)
class Target:
    """Samples with certified predictions; `network` returns logits (B, N) in the precision of the claim.

    All tensors are on the device of the network. `witness` is the same network on the CPU, where points that
    were found elsewhere are evaluated again before they count.
    """

    network: Callable[[Tensor], Tensor]
    witness: Callable[[Tensor], Tensor] | None  # None where the claim is about the network on this device
    certifier: Certifier
    rounding: Rounding
    bounds: tuple[
        float, float
    ]  # inputs lie between; certificates also hold outside, accuracies are counted inside
    x: Tensor  # (B, ...)
    prediction: Tensor  # (B,)
    rival: Tensor  # (B,)
    radius: Tensor  # (B,) float64

    @classmethod
    def of(
        cls,
        model: nn.Module,
        certifier: Certifier,
        x: Tensor,
        rounding: Rounding,
        bounds: tuple[float, float],
        local: Sequence[float] = (),
    ) -> Target:
        """Certify the samples. `rounding="float32"` makes a claim about float32, the others about float64."""
        dtype = torch.float32 if rounding == "float32" else torch.float64
        where = double_device(example_of(model).device)
        module = copy.deepcopy(model).to(where, dtype).eval().requires_grad_(False)
        certificate = certifier(x.to(dtype), rounding, local=local)
        again = None
        if where.type != "cpu" and dtype == torch.float64:
            again = copy.deepcopy(module).to("cpu")
        if (certificate.prediction < 0).any():
            raise InputError("model: its logits are not finite on some samples; nothing to attack")
        return cls(
            network=lambda points: binary_as_two(module(points)),
            witness=None if again is None else lambda points: binary_as_two(again(points)),
            certifier=certifier,
            rounding=rounding,
            bounds=bounds,
            x=x.to(where, dtype),
            prediction=certificate.prediction.to(where),
            rival=certificate.rival.to(where),
            radius=certificate.radius.to(where),
        )

    def __len__(self) -> int:
        return len(self.x)

    def where(self, mask: Tensor) -> Target:
        """Select some of the samples."""
        return replace(
            self,
            x=self.x[mask],
            prediction=self.prediction[mask],
            rival=self.rival[mask],
            radius=self.radius[mask],
        )

    def spread(self, values: Tensor) -> Tensor:
        """Reshape (B,) so that it multiplies samples."""
        return values.to(self.x.dtype).view(-1, *[1] * (self.x.ndim - 1))

    @torch.no_grad()
    def flipped(self, points: Tensor) -> Tensor:
        """Return whether the network as it runs predicts another class at each point: (B,)."""
        return self.network(points).argmax(dim=1) != self.prediction

    @torch.no_grad()
    def witnessed(self, points: Tensor) -> Tensor:
        """Return whether each point has another prediction, on the CPU too where it is the judge: (B,)."""
        found = self.flipped(points)
        if self.witness is None or not found.any():
            return found
        there, ours = points[found].cpu(), self.prediction[found].cpu()
        kept = found.clone()
        kept[found] = (self.witness(there).argmax(dim=1) != ours).to(found.device)
        return kept

    def distance(self, points: Tensor) -> Tensor:
        """Return the distance of each point from its sample: (B,) float64."""
        distance: Tensor = torch.linalg.vector_norm((points.double() - self.x.double()).flatten(1), dim=1)
        return distance

    def broken(self, points: Tensor) -> Tensor:
        """Return whether a point within the radius refutes the claim by another prediction: (B,)."""
        claimed = self.radius > 0  # radius 0 claims nothing
        near = claimed & self.witnessed(points) & (self.distance(points) <= self.radius * (1 + 1e-9))
        for i in near.nonzero().flatten().tolist():
            near[i] = self._within(points[i], i) and self._contradicts(points[i], i)
        return near

    def inside(self, points: Tensor, eps: float) -> Tensor:
        """Return whether each point lies within eps of its sample, in exact arithmetic: (B,)."""
        ball = replace(self, radius=torch.full_like(self.radius, eps))
        return torch.tensor([ball._within(point, i) for i, point in enumerate(points)])

    def _within(self, point: Tensor, i: int) -> bool:
        """Return whether the point lies within the radius, in exact arithmetic."""
        differences = zip(point.flatten().tolist(), self.x[i].flatten().tolist(), strict=True)
        square = sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in differences), Fraction(0))
        return square <= Fraction(float(self.radius[i])) ** 2

    def _contradicts(self, point: Tensor, i: int) -> bool:
        """Return whether a point refutes the claim; that of float64 needs another certified prediction."""
        if self.rounding != "float64":
            return True
        there = self.certifier(point[None], self.rounding)
        return bool(there.radius > 0) and bool(there.prediction != self.prediction[i])
