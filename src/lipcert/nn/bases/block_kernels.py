r"""Orthogonal kernels as products of an orthonormal matrix and kernels of two taps, [P, I − P] along an axis.

$$ K = Q \,\square\, [P_1, I - P_1] \,\square\, [P_2, I - P_2]^T \,\square\, \dots, \qquad P = V V^T $$

□ composes convolutions, and the factors turn from one axis to the other. $P + e^{i\omega}(I - P)$ is unitary
at every frequency for a projector P, and a contraction whenever ‖V‖ ≤ 1. So K is orthogonal with circular
padding as far as Q is. With zeros around, inputs and outputs are parts of those on a larger circle, so its
norm is at most 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.errors import InputError
from lipcert.nn.bases.derived import Derived
from lipcert.nn.bases.polar import ORDER, STEPS, check_steps, polar


@dataclass(frozen=True)
class BlockKernels:
    """The recipe of a kernel from free parameters: sizes, and which axes the factors lengthen.

    Q multiplies adjacent patches of the size `patch` with `middle` channels per group.
    """

    inputs: int  # per group
    outputs: int
    middle: int
    groups: int
    kernel: tuple[int, int]
    patch: tuple[int, int]

    def __post_init__(self) -> None:
        if any(k < p for k, p in zip(self.kernel, self.patch, strict=True)):
            raise InputError(
                f"kernel_size, stride: expected a kernel of at least the stride, got {self.kernel} and "
                f"{self.patch}: no such convolution is orthogonal"
            )
        if self.axes and self.middle < 2:
            raise InputError(
                "channels: expected at least 2 per group, as orthogonal kernels of one channel are shifts"
            )

    @property
    def axes(self) -> list[int]:
        """Return the axis, 0 or 1, of every factor in turn."""
        down, right = (k - p for k, p in zip(self.kernel, self.patch, strict=True))
        both = zip_longest([0] * down, [1] * right)
        return [axis for pair in both for axis in pair if axis is not None]

    def first_matrices(self) -> Tensor:
        """Return random orthonormal matrices: (groups, outputs, middle·patch)."""
        columns = self.middle * self.patch[0] * self.patch[1]
        return _random(self.groups, 1, self.outputs, columns)[:, 0]

    def first_factors(self) -> Tensor:
        """Return random orthonormal bases V: (groups, factors, middle, middle/2)."""
        return _random(self.groups, len(self.axes), self.middle, max(1, self.middle // 2))

    def kernels(self, matrices: Tensor, factors: Tensor | None, order: int, steps: int) -> Tensor:
        """Return kernels (groups·outputs, inputs, k₁, k₂) from free matrices and factors."""
        shape = (self.groups, self.outputs, self.middle, *self.patch)
        found = polar(matrices, order, steps).view(shape).permute(0, 1, 3, 4, 2)
        if factors is not None:
            bases = polar(factors, order, steps).unbind(1)
            for basis, axis in zip(bases, self.axes, strict=True):
                found = _lengthened(found, basis, axis)
        # Beyond the layer's inputs the middle channels are zero.
        return found[..., : self.inputs].permute(0, 1, 4, 2, 3).flatten(0, 1)


class BlockLayer(Derived):
    """A layer whose kernels come from matrices and, if they are larger than the patches, from factors."""

    raw: nn.Parameter  # the matrices

    def __init__(self, *arguments: Any, order: int = ORDER, steps: int = STEPS, **settings: Any) -> None:
        check_steps(order, steps)
        super().__init__(*arguments, **settings)
        self.order, self.steps = order, steps
        self.factors = nn.Parameter(self.blocks().first_factors()) if self.blocks().axes else None

    def blocks(self) -> BlockKernels:
        """Return how the kernels are made."""
        raise NotImplementedError

    def _sources(self) -> list[Tensor]:
        return [self.raw] if self.factors is None else [self.raw, self.factors]

    def derive(self, *sources: Tensor) -> tuple[Tensor, ...]:
        """Return the kernels."""
        raw, factors = sources if len(sources) > 1 else (sources[0], None)
        return (self.blocks().kernels(raw, factors, self.order, self.steps),)


def _lengthened(kernels: Tensor, basis: Tensor, axis: int) -> Tensor:
    """Return kernels (groups, outputs, k₁, k₂, middle) composed with [P, I − P] along an axis."""
    mirrored = (kernels.flatten(1, 3) @ basis @ basis.mT).view_as(kernels)
    ends = [(0, 0, 0, 0, 0, 1), (0, 0, 0, 0, 1, 0)] if axis == 0 else [(0, 0, 0, 1), (0, 0, 1, 0)]
    return F.pad(mirrored, ends[0]) + F.pad(kernels - mirrored, ends[1])


def _random(groups: int, count: int, rows: int, columns: int) -> Tensor:
    """Return random matrices with orthonormal rows or columns."""
    found = torch.empty(groups, count, rows, columns)
    for matrix in found.flatten(0, 1):
        nn.init.orthogonal_(matrix)
    return found


def per_group(channels: int, groups: int, patch: Sequence[int] = (1, 1)) -> int:
    """Return the channels per group before patches of this size become the channels of one pixel."""
    pixels = patch[0] * patch[1]
    return -(-channels // (groups * pixels))
