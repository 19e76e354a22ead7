"""Estimate ‖W‖₂ of many small dense layers at once: the layers of an MLP, or of a stack of MLPs.

Each alone is a dozen tiny kernels per step, and calling them takes longer than computing. Padded with zeros,
which change no norm, and packed into one tensor, all layers take one dozen together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lipcert.bounds.gram_iteration import improved


class DenseNorms:
    """The estimates σ = ‖W v‖ for matrices `weights`, each (M, out, in), and unit vectors that follow them.

    Example:
        >>> weights = [3 * torch.eye(2).expand(1, 2, 2), torch.ones(1, 1, 3)]
        >>> norms = DenseNorms([torch.tensor([[0.6, 0.8]]), torch.tensor([[0.6, 0.8, 0.0]])], weights)
        >>> norms(weights, times=10)
        tensor([[3.0000, 1.7321]])
    """

    def __init__(self, vectors: Sequence[Tensor], like: Sequence[Tensor]) -> None:
        self._shapes = [weight.shape for weight in like]
        self._models, layers = len(like[0]), len(like)
        rows, columns = (max(shape[i] for shape in self._shapes) for i in (1, 2))
        # A single matrix gets a companion: torch rounds the product of one differently from that of many.
        slots = layers + (self._models * layers == 1)
        packed = like[0].detach().new_zeros(self._models, slots, rows, columns)
        self._places = [packed[:, i, :m, :n] for i, (_, m, n) in enumerate(self._shapes)]
        self._packed = packed.flatten(0, 1)
        self._vectors = packed.new_zeros(self._models * slots, columns, 1)
        self.set_vectors(vectors)

    def __call__(self, weights: Sequence[Tensor], times: int = 0) -> Tensor:
        """Return σ, (M, layers), with gradients to the weights, after improving the vectors `times` times."""
        norms: Tensor = _Norms.apply(*self._at(weights, times), False, *weights)  # type: ignore[no-untyped-call]
        return norms[:, : len(weights)]

    def product(self, weights: Sequence[Tensor], times: int = 0) -> Tensor:
        """Multiply the norms of each model: (M,), with gradients."""
        product: Tensor = _Norms.apply(*self._at(weights, times), True, *weights)  # type: ignore[no-untyped-call]
        return product

    @torch.no_grad()
    def _at(self, weights: Sequence[Tensor], times: int) -> tuple[Tensor, Tensor]:
        torch._foreach_copy_(self._places, list(weights))
        if times:
            # Replaced, not written in place: autograd may still hold the old ones.
            self._vectors = improved(self._packed, self._vectors, times)
        return self._packed, self._vectors

    def vectors(self) -> list[Tensor]:
        """Return the vectors of every layer: (M, in) each."""
        each = self._vectors.view(self._models, -1, *self._vectors.shape[1:])
        return [each[:, i, :n, 0] for i, (*_, n) in enumerate(self._shapes)]

    def set_vectors(self, vectors: Sequence[Tensor]) -> None:
        """Set the vectors of every layer: (M, in) each."""
        for mine, given in zip(self.vectors(), vectors, strict=True):
            mine.copy_(given)


class _Norms(torch.autograd.Function):
    """The norms ‖W v‖ of packed matrices, or their product; d‖W v‖/dW = (W v/‖W v‖) vᵀ."""

    @staticmethod
    def forward(ctx: Any, packed: Tensor, vectors: Tensor, product: bool, *weights: Tensor) -> Tensor:
        models = len(weights[0])
        images = packed @ vectors
        norms: Tensor = torch.linalg.vector_norm(images, dim=1).view(models, -1)
        ctx.shapes, ctx.product = [weight.shape[1:] for weight in weights], product
        result = norms[:, : len(weights)].prod(1) if product else norms
        ctx.save_for_backward(images, vectors, norms, result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        images, vectors, norms, result = ctx.saved_tensors
        slope = (gradients[0] * result)[:, None] / norms if ctx.product else gradients[0]
        # A matrix of zeros has no gradient, as in torch.
        scale = torch.where(norms > 0, slope / norms, 0.0)
        outer = (images * scale.view(-1, 1, 1)) @ vectors.mT
        outer = outer.view(*norms.shape, *outer.shape[1:])
        parts = (outer[:, i, :rows, :columns] for i, (rows, columns) in enumerate(ctx.shapes))
        return (None, None, None, *parts)
