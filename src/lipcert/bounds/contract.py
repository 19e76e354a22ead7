"""The contract of rules: a `Rule` says what is needed to bound a module type, and a table holds all rules."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from lipcert.bounds.provers.rounding import TINY_ROOT, U
from lipcert.bounds.rule_options import Joining, PowerIteration, Rounding, Shaping
from lipcert.errors import UnknownBoundError
from lipcert.types import Effort, Shape

M = TypeVar("M", bound=nn.Module)
Example = Callable[[], tuple[nn.Module, Shape]]


@dataclass(frozen=True)
class Proof:
    """A proved Lipschitz constant and the name of its prover."""

    value: float
    prover: str


class Rule(Rounding[M], Joining, PowerIteration[M], Shaping[M], ABC):
    """A rule says how far one module type stretches distances. Shapes are without the batch dimension.

    Every rule must say the two constants below. What it may say besides, and what holds if it does not, is in
    `lipcert.bounds.rule_options`: a rule for rounded certificates also has `roundoff` and `roundoff_gain`.
    """

    @abstractmethod
    def upper(self, module: M, shape: Shape, effort: Effort) -> Proof:
        """Prove the Lipschitz constant."""

    @abstractmethod
    def estimate(self, module: M, vector: Tensor | None) -> Tensor | float:
        """Estimate the constant for training, perhaps a little low, with its gradient to the weights."""


@dataclass(frozen=True)
class Registered:
    """A rule, and the smallest modules on which the laws test it."""

    rule: Rule[Any]
    given: tuple[Example, ...]  # for one or several types
    forward: Callable[..., Any] | None = None  # what the class had when the rule was written
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
    """The constant is known, and the map is exact in floating point: it selects or moves entries."""

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    def constant(self, module: nn.Module, shape: Shape | None) -> float:
        """Return the proved constant; override where it depends on the module."""
        return self.value

    def upper(self, module: nn.Module, shape: Shape, effort: Effort) -> Proof:
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
    """The constant is known, of a map between channels (dimension 1) that is the same at every place."""


def settings_roundoff(output: Tensor, *settings: float) -> Tensor:
    """Bound the error of entries that are one of these numbers, where float32 rounds it: (B,)."""
    with np.errstate(over="ignore"):
        rounded = [abs(s) for s in settings if float(np.float32(s)) != s]
    lost = 2 * U * max(rounded, default=0.0) * math.sqrt(output[0].numel())
    return output.new_zeros(output.shape[0]) + lost


def sample_norm(x: Tensor) -> Tensor:
    """Return ‖x_b‖₂ per sample, from above where squares underflow: (B,)."""
    flat = x.flatten(1)
    norm: Tensor = torch.linalg.vector_norm(flat, dim=1)
    return norm + flat.shape[1] * TINY_ROOT
