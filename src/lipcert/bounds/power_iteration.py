"""Power iteration for linear maps: the estimate used in training, never behind a certificate.

It converges from below, so its value is called an estimate. The vectors carry no gradient;
σ = ‖W v‖ does.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from lipcert.bounds.contract import Rule

M = TypeVar("M", bound=nn.Module)


class LinearMap(Rule[M], Generic[M]):
    """An affine layer, given as its linear part and the exact adjoint of that part."""

    has_vector = True

    def apply(self, module: M, v: Tensor) -> Tensor:
        """W v on a batch, without the bias."""
        raise NotImplementedError

    def adjoint(self, module: M, u: Tensor, shape: torch.Size) -> Tensor:
        """Wᵀ u on a batch; `shape` is that of one input."""
        raise NotImplementedError

    def estimate(self, module: M, vector: Tensor | None) -> Tensor:
        """‖W v‖ for the unit vector v."""
        assert vector is not None
        norm: Tensor = torch.linalg.vector_norm(self.apply(module, vector[None]))
        return norm

    def iterate(self, module: M, vector: Tensor, times: int) -> Tensor:
        """v ← WᵀW v, normalised; a vector that vanishes (W = 0) is kept."""
        for _ in range(times):
            image = self.adjoint(module, self.apply(module, vector[None]), vector.shape)[0]
            vector = unit(image, otherwise=vector)
        return vector


def unit(v: Tensor, otherwise: Tensor) -> Tensor:
    """v/‖v‖ without overflow or underflow; `otherwise` if v is zero or not finite."""
    size = torch.linalg.vector_norm(v)
    return torch.where((size > 0) & (size < torch.inf), v / size, otherwise)


def first_vector(shape: Any, seed: int, like: Tensor) -> Tensor:
    """A random unit vector that depends on nothing but its seed and shape."""
    generator = torch.Generator().manual_seed(seed)
    v = torch.randn(shape, generator=generator, dtype=torch.float64)
    return unit(v, otherwise=v).to(like)
