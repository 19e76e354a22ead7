"""The last layer of a certified model: its margins, and their rounding errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lipcert.bounds.bounded import binary_as_two, binary_rows
from lipcert.bounds.contract import sample_norm
from lipcert.bounds.evaluation import DOUBLE, FLOAT32, LONGEST, Arithmetic, Deployed, Evaluation, no_overflow
from lipcert.bounds.provers.rounding import SAFETY, TINY32, TINY_ROOT, U, gamma
from lipcert.certificates.ball_and_box import largest_growth
from lipcert.certificates.local import Local
from lipcert.errors import InputError
from lipcert.types import pairwise_distance

# The numbers of pairs of classes that are looked at together.
_NUMBERS = 1 << 23


@dataclass(frozen=True)
class Head:
    """The last layer in float64: logits, and the error of a difference of two.

    A sum of d products and a bias has d + 1 rounding errors; one more is for rows that are rounded when
    computed.
    """

    rows: Tensor  # (N, D)
    bias: Tensor  # (N,)
    spread: Tensor  # (N, N) ‖w_i − w_j‖, from above
    lengths: Tensor  # (N,) ‖w_i‖, from above
    layer: nn.Module

    @classmethod
    def linear(cls, layer: nn.Linear) -> Head:
        """Make the head of a linear layer; one logit f stands for [0, f]."""
        bias = layer.weight.new_zeros(layer.weight.shape[0]) if layer.bias is None else layer.bias.detach()
        rows = binary_rows(layer.weight.detach())
        padding = rows.shape[0] - bias.shape[0]
        bias = torch.cat([bias.new_zeros(padding), bias])
        return cls(rows, bias, pairs_upper(rows), _lengths_upper(rows), layer)

    @classmethod
    def identity(cls, classes: int) -> Head:
        """Make the head of a model whose last layer is not linear."""
        eye = torch.eye(classes, dtype=torch.float64)
        return cls(eye, eye.new_zeros(classes), pairs_upper(eye), _lengths_upper(eye), nn.Identity())

    def __call__(self, features: Tensor) -> Tensor:
        """Return the logits: (B, N)."""
        return binary_as_two(self.layer(features))

    def margin(self, logits: Tensor, top: Tensor) -> Tensor:
        """Return f_i − f_j for i = top: (B, N). Equal rows differ exactly by their biases."""
        computed = logits.gather(1, top[:, None]) - logits
        known = self.bias[top][:, None] - self.bias
        same = (self.spread[top] == 0) & torch.isfinite(computed)
        return torch.where(same, known, computed)

    def margin_error(self, at_x: Evaluation, top: Tensor, margin: Tensor, own: Arithmetic = DOUBLE) -> Tensor:
        r"""Bound how far each computed f_i − f_j may be above the exact one: (B, N).

        $$ e_{ij} = \|w_i - w_j\| E + \gamma_{d+2} [(|w_i| + |w_j|)|x| + |b_i| + |b_j|] + 4u|f_i - f_j| $$

        Four units are for the difference of the logits and that of margin and error.
        """
        # Scalars first: products of small numbers would underflow in float32.
        dot = (own.unit * gamma(self.length + 2)) * self._sizes(at_x.features, top)
        lost = dot + (own.unit * 4 * U) * margin.abs() + (self.length + 1) * own.tiny
        return own.safety * (self.spread[top] * at_x.error[:, None] + lost)

    def float32_error(
        self, at_x: Evaluation, deployed: Deployed, top: Tensor, own: Arithmetic = DOUBLE
    ) -> tuple[Tensor, Tensor]:
        r"""Bound the loss of a margin in float32 anywhere within r: a_ij + b_ij·r, both (B, N).

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
        return own.safety * (lost + underflow), own.safety * growing

    def float32_limit(self, at_x: Evaluation, deployed: Deployed) -> Tensor:
        """Return the distance within which no float32 number overflows: (B,)."""
        longest = self.lengths.max()
        size = self._as_rows(at_x.features).abs() @ self.rows.abs().amax(0) + self.bias.abs().max()
        size = size + longest * (at_x.error + deployed.a)
        return torch.minimum(deployed.limit, no_overflow(size, longest * (deployed.lipschitz + deployed.b)))

    def local_constants(self, local: Local, top: Tensor) -> Tensor:
        """Return K_ij on every sample's ball for i = top, from the features that move there: (B, N)."""
        moving = local.active if local.active.shape[1] == self.length else local.active.new_ones(())
        squares = [((self.rows[top] - row) ** 2 * moving).sum(1) for row in self.rows]
        spread = torch.stack(squares, dim=1).sqrt() * (1 + (self.length + 16) * U)
        return (spread + self.length * TINY_ROOT) * local.constant[:, None] * (1 + 4 * U)

    def stays_ahead(self, local: Local, margin: Tensor, top: Tensor, unsure: Tensor) -> Tensor:
        """Return for these pairs whether i = top stays ahead of j on all of the ball: (B, N)."""
        ahead = torch.zeros_like(unsure)
        if local.steps.low.shape[1] != self.length:
            return ahead
        pairs = (unsure & (margin > 0)).nonzero()
        for part in torch.split(pairs, max(1, _NUMBERS // self.length)):
            sample, rival = part.unbind(1)
            steps = local.steps.of(sample)
            lost = largest_growth(self.rows[rival] - self.rows[top[sample]], steps, local.distance[sample])
            ahead[sample, rival] = margin[sample, rival] > lost
        return ahead

    @property
    def length(self) -> int:
        """Return D, the number of features."""
        return self.rows.shape[1]

    def _as_rows(self, features: Tensor) -> Tensor:
        """Return features that match the rows: a single logit without a linear head stands for two."""
        return features if features.shape[1] == self.length else binary_as_two(features)

    def _sizes(self, features: Tensor, top: Tensor) -> Tensor:
        """Return (|w_i| + |w_j|)·|x| + |b_i| + |b_j| for i = top: (B, N)."""
        size = self._as_rows(features).abs() @ self.rows.abs().T + self.bias.abs()
        return size + size.gather(1, top[:, None])


def _lengths_upper(rows: Tensor) -> Tensor:
    return SAFETY * sample_norm(rows)


def pairs_upper(rows: Tensor) -> Tensor:
    """Return ‖w_i − w_j‖₂ from above, in float64: (N, N)."""
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
    """Return whether rows i and j are the same numbers: (N, N)."""
    kind: Tensor = torch.unique(rows, dim=0, return_inverse=True)[1]
    return kind[:, None] == kind
