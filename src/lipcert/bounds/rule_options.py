"""The options of a rule: each says more than the two constants, and what holds without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Self, TypeVar

from torch import Tensor, nn

from lipcert.bounds.provers.rounding import TINY32
from lipcert.types import Shape

M = TypeVar("M", bound=nn.Module)


class Rounding(Generic[M]):
    """A bound on how far rounding takes a layer from its formula; without it certificates ignore that."""

    def roundoff(self, module: M, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound ‖computed − exact output‖₂ per sample in float64, both at the computed inputs: (B,)."""
        raise NotImplementedError(f"{type(self).__name__} does not say how far float64 rounds")

    def roundoff_gain(self, module: M) -> float:
        """Return a Lipschitz constant of `roundoff`/u; float32 needs it, float64 is faster with it."""
        raise NotImplementedError(f"{type(self).__name__} does not say how its float32 rounding errors grow")

    def products(self, module: M) -> int:
        """Return how many products are summed in one output, from above."""
        return 8

    def float32_underflow(self, module: M) -> float:
        """Return what one output may lose in float32 to underflow."""
        return (self.products(module) + 2) * TINY32

    def jump(self, module: M) -> float:
        """Return how far one output of torch may be off the formula in any arithmetic, even an exact one."""
        return 0.0


class Joining:
    """The way a layer with several inputs combines what is known of each. One input passes as it is."""

    def join_upper(self, constants: Sequence[float]) -> float:
        """Return the proved constant of all inputs together."""
        (constant,) = constants
        return constant

    def join_estimate(self, constants: Sequence[Tensor]) -> Tensor:
        """Return the estimated constant of all inputs together."""
        (constant,) = constants
        return constant

    def join_errors(self, errors: Sequence[Tensor]) -> Tensor:
        """Return the distance of all computed inputs from the exact ones together: (B,)."""
        (error,) = errors
        return error


class PowerIteration(Generic[M]):
    """A vector of the input's shape that a training keeps for a layer, and improves from step to step."""

    has_vector = False

    def iterate(self, module: M, vector: Tensor, times: int) -> Tensor:
        """Return a better `vector`, by as many products with WᵀW; only for rules with `has_vector`."""
        raise NotImplementedError(f"{type(self).__name__} keeps no vector")

    def power(self, module: M, vector: Tensor, times: int) -> Tensor:
        """Return `vector` after as many plain power iterations, v ← WᵀW v, normalised."""
        raise NotImplementedError(f"{type(self).__name__} has no power iteration: use estimate='krylov'")


class Shaping(Generic[M]):
    """The layer's geometry as the rule reads it, which tracing compares with what the layer does."""

    def output_shape(self, module: M, shape: Shape) -> Shape | None:
        """Return the shape of one output as the rule sees the layer; None where it does not need to know."""
        return None

    def on(self, module: M, shape: Shape) -> Self:
        """Return the rule for inputs of one shape: this one, unless it must know the shape beforehand."""
        return self
