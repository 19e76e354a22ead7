"""The contract between lipcert and a module type: the `Rule`, and the table of all rules.

A rule answers four questions about one module on inputs of a known shape:

- `estimate`: its Lipschitz constant for training, differentiable, possibly a little low;
- `upper`: its Lipschitz constant, proved;
- `join`: how the constants of several inputs combine (a single constant stays as it is);
- `roundoff`: how far its float64 output may lie from the exact output at the same input (and `roundoff_gain`:
    how fast that grows with the input, which float32 certificates need and which speeds up float64 ones).
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
    """A proved Lipschitz constant and the name of its prover."""

    value: float
    prover: str


class Rule(Generic[M]):
    """The bounds of one module type. Shapes are without the batch dimension."""

    # The estimate keeps a vector of the input shape for maps that need one.
    has_vector = False
    # Training uses the constant that the layer is built to have.
    built = False

    def upper(self, module: M, shape: Shape, effort: str) -> Proof:
        """Prove the Lipschitz constant."""
        raise NotImplementedError

    def estimate(self, module: M, vector: Tensor | None) -> Tensor | float:
        """Return the Lipschitz constant for training, with the gradient to the weights."""
        raise NotImplementedError

    def iterate(self, module: M, vector: Tensor, times: int) -> Tensor:
        """Improve `vector` by `times` products with WᵀW; only for rules with `has_vector`."""
        raise NotImplementedError

    def roundoff(self, module: M, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound ‖computed − exact output‖₂ per sample, both at the computed inputs: (B,)."""
        raise NotImplementedError

    def roundoff_gain(self, module: M) -> float:
        """Return a Lipschitz constant of `roundoff`/u: how fast rounding errors grow with the inputs."""
        raise NotImplementedError(f"{type(self).__name__} does not say how its float32 rounding errors grow")

    def output_shape(self, module: M, shape: Shape) -> Shape | None:
        """Return the shape of one output according to the rule; None where the rule need not know it."""
        return None

    def products(self, module: M) -> int:
        """Bound the number of products that are summed in one output."""
        return 8

    def float32_underflow(self, module: M) -> float:
        """Bound the loss of one output to underflow in float32."""
        return (self.products(module) + 2) * TINY32

    def join_upper(self, constants: Sequence[float]) -> float:
        """Return the proved constant of all inputs together."""
        (constant,) = constants
        return constant

    def join_estimate(self, constants: Sequence[Tensor]) -> Tensor:
        """Return the estimated constant of all inputs together."""
        (constant,) = constants
        return constant

    def join_errors(self, errors: Sequence[Tensor]) -> Tensor:
        """Bound the distance of all computed inputs together from the exact ones: (B,)."""
        (error,) = errors
        return error


@dataclass(frozen=True)
class Registered:
    """A rule, and the smallest modules on which the laws test it."""

    rule: Rule[Any]
    given: tuple[Example, ...]  # of one or several types
    forward: Callable[..., Any] | None = None  # of the class when the rule was written
    only: type[nn.Module] | None = None  # the type whose examples to choose; all if None

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """Return the examples of this type, made on demand because a new module draws random numbers."""
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
        A layer of your own that is 1-Lipschitz and exact in floating point:

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
    """Register a rule with arguments: the plain-call form of `rule`."""
    if not examples:
        raise ValueError("examples: a rule needs at least one, because the laws test it on them")
    for module_type in types:
        REFUSALS.pop(module_type, None)  # an explicit rule overrides a refusal
        only = None if len(types) == 1 else module_type
        RULES[module_type] = Registered(a_rule, tuple(examples), module_type.forward, only)


def refuse(*types: type[nn.Module], reason: str) -> None:
    """Register why a module type can have no rule."""
    REFUSALS.update(dict.fromkeys(types, reason))


def rule_of(module: nn.Module, path: str = "") -> Rule[Any]:
    """Return the rule of a module, or raise `UnknownBoundError` with advice."""
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
    """Return the type whose forward runs: torch's parametrisations subclass it without changing forward."""
    return type(module).__mro__[1] if parametrize.is_parametrized(module) else type(module)


class Constant(Rule[Any]):
    """A rule for a known constant of a map that is exact in floating point (a selection)."""

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    def constant(self, module: nn.Module, shape: Shape | None) -> float:
        """Return the proved constant; override where it depends on the module."""
        return self.value

    def upper(self, module: nn.Module, shape: Shape, effort: str) -> Proof:
        """Return the constant."""
        return Proof(self.constant(module, shape), "known")

    def estimate(self, module: nn.Module, vector: Tensor | None) -> Tensor | float:
        """Return the constant."""
        return self.constant(module, None)

    def roundoff(self, module: nn.Module, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Return 0: the output consists of unchanged inputs."""
        return output.new_zeros(output.shape[0])

    def roundoff_gain(self, module: nn.Module) -> float:
        """Return 0: there is no rounding error."""
        return 0.0


class Channelwise(Constant):
    """A rule for a map between channels (dimension 1), the same at every place of the other dimensions."""


def sample_norm(x: Tensor) -> Tensor:
    """Return ‖x_b‖₂ per sample, from above where squares underflow: (B,)."""
    flat = x.flatten(1)
    norm: Tensor = torch.linalg.vector_norm(flat, dim=1)
    return norm + flat.shape[1] * TINY_ROOT
