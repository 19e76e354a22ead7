"""What lipcert must know of a module type to bound it: the `Rule`, and the table of all rules.

A rule answers four questions about one module on inputs of a known shape:

- `estimate`: its Lipschitz constant for training, differentiable, possibly a little low;
- `upper`: its Lipschitz constant, proved;
- `join`: how the constants of several inputs combine (one input: they just pass);
- `roundoff`: how far its float64 output may lie from the exact output at the same input (and `roundoff_gain`:
  how fast that grows with the input, which float32 certificates need and float64 ones are faster with).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from lipcert.bounds.provers.rounding import TINY32, TINY_ROOT
from lipcert.errors import UnknownBoundError
from lipcert.types import Shape

M = TypeVar("M", bound=nn.Module)
Example = Callable[[], tuple[nn.Module, Shape]]


@dataclass(frozen=True)
class Proof:
    """A proved Lipschitz constant and how it was proved."""

    value: float
    prover: str


class Rule(Generic[M]):
    """How one module type stretches distances. Shapes are without the batch dimension."""

    # The estimate keeps a vector of the input shape for maps that need one.
    has_vector = False
    # Training takes the constant that the layer is built to have.
    built = False

    def upper(self, module: M, shape: Shape, effort: str) -> Proof:
        """The Lipschitz constant, proved."""
        raise NotImplementedError

    def estimate(self, module: M, vector: Tensor | None) -> Tensor | float:
        """The Lipschitz constant for training; carries the gradient to the weights."""
        raise NotImplementedError

    def iterate(self, module: M, vector: Tensor, times: int) -> Tensor:
        """A better `vector`, by as many products with WᵀW; only for rules with `has_vector`."""
        raise NotImplementedError

    def roundoff(self, module: M, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound of ‖computed − exact output‖₂ a sample, both at the computed inputs: (B,)."""
        raise NotImplementedError

    def roundoff_gain(self, module: M) -> float:
        """A Lipschitz constant of `roundoff`/u in the inputs: how fast roundings grow with them."""
        raise NotImplementedError(f"{type(self).__name__} does not say how its float32 roundings grow")

    def output_shape(self, module: M, shape: Shape) -> Shape | None:
        """Return the shape of one output as the rule sees the layer; None where it does not need to know."""
        return None

    def products(self, module: M) -> int:
        """How many products are summed in one output, from above."""
        return 8

    def float32_underflow(self, module: M) -> float:
        """Return what one output may lose in float32 to underflow."""
        return (self.products(module) + 2) * TINY32

    def join_upper(self, constants: Sequence[float]) -> float:
        """Proved constant of all inputs together."""
        (constant,) = constants
        return constant

    def join_estimate(self, constants: Sequence[Tensor]) -> Tensor:
        """Estimated constant of all inputs together."""
        (constant,) = constants
        return constant

    def join_errors(self, errors: Sequence[Tensor]) -> Tensor:
        """Distance of the computed inputs from the exact ones, all together: (B,)."""
        (error,) = errors
        return error


@dataclass(frozen=True)
class Registered:
    """A rule, and the smallest modules on which the laws test it."""

    rule: Rule[Any]
    given: tuple[Example, ...]  # perhaps of several types
    forward: Callable[..., Any] | None = None  # of the class when the rule was written for it
    only: type[nn.Module] | None = None  # whose examples to choose; all if None

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """Return the examples of this type. They are made on demand, as a new module draws random numbers."""
        mine = tuple(e for e in self.given if self.only is None or type(e()[0]) is self.only)
        if not mine:
            name = self.only.__name__ if self.only is not None else "it"
            raise ValueError(f"examples: none for {name}, so no law would test it")
        return mine


RULES: dict[type[nn.Module], Registered] = {}
REFUSALS: dict[type[nn.Module], str] = {}
R = TypeVar("R", bound=Rule[Any])


def rule(*types: type[nn.Module], examples: Sequence[Example]) -> Callable[[type[R]], type[R]]:
    """Decorate a `Rule` class: it holds for exactly these module types, not for their subclasses.

    Example:
        A layer of your own, 1-Lipschitz and exact in floating point:

        >>> class Negate(nn.Module):
        ...     def forward(self, x): return -x
        >>> @rule(Negate, examples=[lambda: (Negate(), (3,))])
        ... class NegateRule(Constant):
        ...     pass
        >>> rule_of(Negate()).upper(Negate(), (3,), "auto").value
        1.0
    """

    def add(cls: type[R]) -> type[R]:
        register(cls(), *types, examples=examples)
        return cls

    return add


def register(a_rule: Rule[Any], *types: type[nn.Module], examples: Sequence[Example]) -> None:
    """Plain-call form of `rule`, for a rule with arguments."""
    if not examples:
        raise ValueError("examples: a rule needs at least one, or no law would test it")
    for module_type in types:
        REFUSALS.pop(module_type, None)  # who writes a rule knows better
        only = None if len(types) == 1 else module_type
        RULES[module_type] = Registered(a_rule, tuple(examples), module_type.forward, only)


def refuse(*types: type[nn.Module], reason: str) -> None:
    """Say why a module type can have no rule."""
    REFUSALS.update(dict.fromkeys(types, reason))


def rule_of(module: nn.Module, path: str = "") -> Rule[Any]:
    """The rule of a module, or `UnknownBoundError` with what to do about it."""
    module_type = plain_type(module)
    where = f"{path or 'module'} ({module_type.__name__})"
    if module_type in REFUSALS:
        raise UnknownBoundError(f"{where}: {REFUSALS[module_type]}")
    if module_type not in RULES:
        raise UnknownBoundError(
            f"{where} has no Lipschitz rule; write one and decorate it with "
            f"@lipcert.bounds.rule({module_type.__name__}, examples=[...])"
        )
    known = RULES[module_type]
    if known.forward not in (None, module_type.forward):
        raise UnknownBoundError(f"{where}: the forward of its class was replaced after its rule was written")
    return known.rule


def plain_type(module: nn.Module) -> type[nn.Module]:
    """The type whose forward runs: torch's parametrisations subclass it without changing that."""
    return type(module).__mro__[1] if parametrize.is_parametrized(module) else type(module)


class Constant(Rule[Any]):
    """A constant known beforehand, of a map that is exact in floating point (a selection)."""

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    def constant(self, module: nn.Module, shape: Shape | None) -> float:
        """The proved constant; override where it depends on the module."""
        return self.value

    def upper(self, module: nn.Module, shape: Shape, effort: str) -> Proof:
        """The constant."""
        return Proof(self.constant(module, shape), "known")

    def estimate(self, module: nn.Module, vector: Tensor | None) -> Tensor | float:
        """The constant."""
        return self.constant(module, None)

    def roundoff(self, module: nn.Module, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Nothing: the output is made of inputs, untouched."""
        return output.new_zeros(output.shape[0])

    def roundoff_gain(self, module: nn.Module) -> float:
        """Nothing grows."""
        return 0.0


class Channelwise(Constant):
    """A rule for a map between channels (dimension 1), the same at every place of the other dimensions."""


def sample_norm(x: Tensor) -> Tensor:
    """‖x_b‖₂ of every sample, from above where squares underflow: (B,)."""
    flat = x.flatten(1)
    norm: Tensor = torch.linalg.vector_norm(flat, dim=1)
    return norm + flat.shape[1] * TINY_ROOT
