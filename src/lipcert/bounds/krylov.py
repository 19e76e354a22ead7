"""Estimate norms of linear maps from below, for training; never used in a certificate.

σ = ‖W v‖ for a unit vector v, which follows the weights from step to step. v is the best vector of a small
Krylov space (Lanczos), which costs as much as power iteration and lies much closer. In the middle of a fast
training of a 4C3F, five power iterations per step are 10 % low, and five of these are 2 % low. The vectors
carry no gradient, σ does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from lipcert.bounds.contract import Rule
from lipcert.bounds.rule_options import PowerIteration
from lipcert.waiting import is_read_at_once

M = TypeVar("M", bound=nn.Module)

# The largest Krylov space; longer iterations restart from its best vector.
_KRYLOV = 8


class LinearPart(PowerIteration[M], ABC):
    """The linear part W of an affine layer, given with its exact adjoint."""

    has_vector = True

    @abstractmethod
    def apply(self, module: M, v: Tensor) -> Tensor:
        """Return W v on a batch, without the bias."""

    @abstractmethod
    def adjoint(self, module: M, u: Tensor, shape: torch.Size) -> Tensor:
        """Return Wᵀ u on a batch; `shape` is that of one input."""

    def estimate(self, module: M, vector: Tensor | None) -> Tensor:
        """Return ‖W v‖ for the unit vector v."""
        assert vector is not None
        norm: Tensor = torch.linalg.vector_norm(self.apply(module, vector[None]))
        return norm

    def iterate(self, module: M, vector: Tensor, times: int) -> Tensor:
        """Improve v by `times` products with WᵀW; a vector that vanishes (W = 0) is kept."""
        for start in range(0, times, _KRYLOV):
            vector = self._lanczos(module, vector, min(_KRYLOV, times - start))
        return vector

    def _lanczos(self, module: M, vector: Tensor, dimension: int) -> Tensor:
        """Return the best vector of span{v, WᵀW v, (WᵀW)² v, …}, after one more product."""
        shape, scale, columns = vector.shape, None, []
        basis = vector.new_zeros(dimension + 1, vector.numel())
        basis[0] = vector.reshape(-1)
        for i in range(dimension):
            image = self.apply(module, basis[i].view(1, *shape))
            scale = torch.linalg.vector_norm(image) if scale is None else scale  # otherwise WᵀW overflows
            product = self.adjoint(module, image / scale, shape).reshape(-1)
            columns.append(basis[:-1] @ product)
            rest = torch.addmv(product, basis[:-1].T, columns[-1], alpha=-1)
            basis[i + 1] = rest if i + 1 == dimension else rest * _factor(rest, product)
        value, best = _largest_eigenpair(torch.stack(columns, dim=1))
        # WᵀW Σ c_i v_i lies in the space, except for the rest of the last product.
        better = torch.cat([value * best, best[-1:]]) @ basis
        return unit(better.view(shape), otherwise=vector)

    def power(self, module: M, vector: Tensor, times: int) -> Tensor:
        """Run plain power iteration, the usual method: v ← WᵀW v, normalised; W = 0 keeps v."""
        for _ in range(times):
            image = self.adjoint(module, self.apply(module, vector[None]), vector.shape)[0]
            vector = unit(image, otherwise=vector)
        return vector


class LinearMap(LinearPart[M], Rule[M], Generic[M]):
    """The rule of an affine layer: its linear part estimates the constant, `upper` proves it."""


def _factor(rest: Tensor, product: Tensor) -> Tensor:
    """Return 1/‖rest‖, or 0 where the rest of a product is only rounding error: the space ends there."""
    size, least = torch.linalg.vector_norm(rest), torch.finfo(rest.dtype).eps ** 0.5
    return torch.where(size > least * torch.linalg.vector_norm(product), size.reciprocal(), 0.0)


def _largest_eigenpair(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Find the largest eigenpair of a symmetric matrix given by its upper triangle."""
    # Weights that are not finite are reported elsewhere; here they must not stop the eigenvalue solver.
    matrix = torch.nan_to_num(matrix)
    if not is_read_at_once(matrix):  # torch's solver looks at its outcome
        return _by_squaring(matrix)
    values, vectors = torch.linalg.eigh(matrix, UPLO="U")
    return values[-1], vectors[:, -1]


def _by_squaring(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Find the largest eigenpair of a small positive matrix from its power 2**10, as above."""
    upper = matrix.triu(1)
    whole = power = upper + upper.T + matrix.diagonal().diag()
    for i in range(10):
        if i % 5 == 0:
            power = power / torch.linalg.matrix_norm(power).clamp_min(torch.finfo(power.dtype).tiny)
        power = power @ power
    # In a Krylov space the first vector has a part in every eigenvector.
    best = unit(power[:, 0], otherwise=power.new_ones(1).expand(len(power)) / len(power) ** 0.5)
    return best @ (whole @ best), best


def unit(v: Tensor, otherwise: Tensor) -> Tensor:
    """Return v/‖v‖ without overflow or underflow; `otherwise` if v is zero or not finite."""
    size = torch.linalg.vector_norm(v)
    return torch.where((size > 0) & (size < torch.inf), v / size, otherwise)


def first_vector(shape: Any, seed: int, like: Tensor) -> Tensor:
    """Return a random unit vector that depends only on its seed and shape."""
    generator = torch.Generator().manual_seed(seed)
    v = torch.randn(shape, generator=generator, dtype=torch.float64)
    return unit(v, otherwise=v).to(like)
