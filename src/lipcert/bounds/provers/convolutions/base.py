"""The contract of provers of a convolution's norm: what each can prove, at what effort, and the bound."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor

from lipcert.bounds.provers.fourier import dilated, polyphase
from lipcert.bounds.provers.geometry import Geometry
from lipcert.bounds.provers.rounding import mul_up, sqrt_up
from lipcert.registry import Registry
from lipcert.types import Effort

# Share of the image from which a kernel counts as large: there the Fourier bound is loose.
LARGE = 0.02


class Prover(ABC):
    """Proves a bound. Weights are (c_out, c_in/groups, k₁, k₂), float64, at most 1 in absolute value."""

    looseness: ClassVar[int]  # the least loose prover that can prove a bound is used
    replaces: ClassVar[str | None] = None  # a prover of the same bound, which older certificates name

    def can_prove(self, g: Geometry) -> bool:
        """Return whether it knows this kind of convolution."""
        return True

    @abstractmethod
    def is_affordable(self, weight: Tensor, g: Geometry, effort: Effort) -> bool:
        """Return whether the effort covers its cost."""

    @abstractmethod
    def upper(self, weight: Tensor, g: Geometry) -> float:
        """Return a proved upper bound of the norm."""


PROVERS: Registry[Prover] = Registry("prover", package="lipcert.bounds.provers.convolutions")


def phases(weight: Tensor, g: Geometry, stride: tuple[int, int]) -> tuple[Tensor, ...]:
    """Return the kernels of every group over cells of this stride."""
    return polyphase(dilated(weight, g.dilation), stride).chunk(g.groups)


def with_padding(norm: float, g: Geometry) -> float:
    """Multiply a norm by that of the padding where it repeats pixels."""
    return mul_up(norm, sqrt_up(float(g.copies))) if g.copies > 1 else norm


def wraps_once(g: Geometry) -> bool:
    """Return whether a convolution is circular and none of its outputs is made twice."""
    axes = zip(g.padded, g.reach, g.stride, g.size, strict=True)
    return g.mode == "circular" and all((n - r) // s + 1 <= -(-m // s) for n, r, s, m in axes)
