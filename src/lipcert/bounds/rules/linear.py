"""Dense layers: the spectral norm of their matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds.contract import Proof, rule, sample_norm
from lipcert.bounds.gram_iteration import SMALL, improved
from lipcert.bounds.krylov import LinearMap
from lipcert.bounds.provers.factorisation import nu, spectral_norm_upper
from lipcert.bounds.provers.proof_cache import remembered
from lipcert.bounds.provers.rounding import SAFETY, gamma
from lipcert.types import Effort, Shape


@rule(
    nn.Linear,
    examples=[
        lambda: (nn.Linear(5, 3), (5,)),
        lambda: (nn.Linear(3, 8, bias=False), (3,)),
        lambda: (nn.Linear(1, 1), (1,)),
        lambda: (nn.Linear(4, 6), (2, 3, 4)),
    ],
)
class LinearRule(LinearMap[nn.Linear]):
    """The constant is ‖W‖₂; the layer acts on the last dimension, whatever the leading ones are."""

    def apply(self, module: nn.Linear, v: Tensor) -> Tensor:
        """Return W v; a single vector takes `mv`, whose gradient is a plain outer product."""
        if v.ndim == 2 and len(v) == 1:
            return (module.weight @ v[0])[None]
        return F.linear(v, module.weight)

    def adjoint(self, module: nn.Linear, u: Tensor, shape: torch.Size) -> Tensor:
        """Return Wᵀ u."""
        return F.linear(u, module.weight.T)

    def iterate(self, module: nn.Linear, vector: Tensor, times: int) -> Tensor:
        """Iterate on WᵀW itself where the matrix is small: fewer and larger kernels."""
        weight = module.weight
        if vector.ndim > 1 or max(weight.shape) > SMALL:
            return super().iterate(module, vector, times)
        return improved(weight[None], vector[None, :, None], times)[0, :, 0]

    def upper(self, module: nn.Linear, shape: Shape, effort: Effort) -> Proof:
        """Prove the norm exactly for any effort, because the prover is quick for stored matrices."""
        return dense_upper(module.weight)

    def roundoff(self, module: nn.Linear, inputs: Sequence[Tensor], output: Tensor) -> Tensor:
        """Bound the error by γ_{m+1} ‖|W||x| + |b|‖₂, for any order of summation, with or without FMA."""
        (x,) = inputs
        bias = None if module.bias is None else module.bias.abs()
        absolute = F.linear(x.abs(), module.weight.abs(), bias)
        return dot_roundoff(absolute, self.products(module))

    def roundoff_gain(self, module: nn.Linear) -> float:
        """Return the Lipschitz constant of γ‖|W||x| + |b|‖/u."""
        return dot_gain(nu(module.weight.detach().double()), self.products(module))

    def products(self, module: nn.Linear) -> int:
        """Return the width of the matrix that runs, which need not be `in_features`."""
        return module.weight.shape[1]


def executed_matrix(rule_of_layer: object, module: Any) -> Tensor | None:
    """Return W of a layer that computes Wx + b as nn.Linear does, and None where a rule says otherwise.

    A rule made from this one may speak of another map, by an `apply` of its own.
    """
    kind = type(rule_of_layer)
    if not issubclass(kind, LinearRule) or kind.apply is not LinearRule.apply:
        return None
    weight: Tensor = module.weight.detach()
    return weight


def dense_upper(weight: Tensor) -> Proof:
    """Prove the norm of a matrix."""
    return remembered(weight, "dense", lambda: Proof(spectral_norm_upper(weight), "cholesky"))


def dot_gain(absolute: float, terms: int) -> float:
    """Return how fast `dot_roundoff`/u grows, from ‖|W|‖₂² ≤ `absolute`."""
    return SAFETY * SAFETY * (terms + 2) * math.sqrt(absolute)


def dot_roundoff(absolute: Tensor, terms: int) -> Tensor:
    """Bound the error of sums of `terms` products and a bias, from Σ|products| + |bias|: (B,)."""
    # The term that sample_norm adds for squares that underflow covers products that do: γ·2^−530 ≫ 2^−1074.
    return sample_norm(absolute) * gamma(terms + 1) * SAFETY
