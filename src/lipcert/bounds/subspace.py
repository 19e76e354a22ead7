"""Follow the norms of all layers at once, with few kernels and without waiting for the device.

For every layer a training keeps a block of its best vectors, where WᵀW moves them, and where they were
before. One round takes the best vectors of the space that these span with the present weights, and makes
one product of WᵀW with each (LOBPCG). Krylov spaces need several products one after the other, and a dozen
kernels per layer for each; a round takes two kernels per layer, and thirty for all layers together, which
are padded to one size. Knyazev. Toward the optimal preconditioned eigensolver: Locally optimal block
preconditioned conjugate gradient method. SIAM J. Sci. Comput. 23(2), 2001.

The small eigenvalue problems are solved by squaring matrices, because torch's eigenvalue solvers wait for a
GPU. As everywhere in training, ‖W v‖ for a unit vector v is a norm from below, whatever becomes of v.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lipcert.bounds.krylov import LinearPart, first_vector
from lipcert.bounds.tracing.program import Step

# The best vectors of a layer, and all vectors of its space: these, their products and their last places.
BLOCK = 4
_ROWS = 3 * BLOCK

# Squarings of the small matrices: float32 holds the power 2**5 of a matrix of 12 rows whose norm is 1.
_SQUARINGS = 5


class Packing:
    """Tensors of all layers side by side, as (layers, rows, entries), with zeros behind the shorter ones."""

    def __init__(self, shapes: Sequence[tuple[int, ...]]) -> None:
        self.shapes = shapes
        self.sizes = [math.prod(shape) for shape in shapes]
        self.width = max(self.sizes, default=0)

    def packed(self, tensors: Sequence[Tensor], zeros: Tensor) -> Tensor:
        """Pack tensors of the same number of rows, in one kernel: (L, rows, width)."""
        rows, parts = len(tensors[0]), []
        for tensor, size in zip(tensors, self.sizes, strict=True):
            parts += [tensor.reshape(rows, size), zeros[:rows, : self.width - size]]
        return torch.cat(parts, dim=1).view(rows, len(tensors), self.width).transpose(0, 1)

    def parts(self, packed: Tensor) -> list[Tensor]:
        """Return the tensors of the layers, (rows, ...) each, as views."""
        found = zip(packed.unbind(), self.sizes, self.shapes, strict=True)
        return [rows[:, :size].reshape(-1, *shape) for rows, size, shape in found]


class Subspaces:
    """The layers whose norms are followed, in the order of their vectors."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)
        self._inputs = Packing([step.input_shapes[0] for step in self.steps])
        self._outputs = Packing([step.shape for step in self.steps])

    def zeros(self, like: Tensor) -> Tensor:
        """Return what shorter tensors are padded with; a training makes it once."""
        return like.new_zeros(_ROWS, max(self._inputs.width, self._outputs.width))

    def first_space(self, like: Tensor) -> Tensor:
        """Return random unit vectors, (L, rows, width), which depend on the shapes alone."""
        rows = [
            torch.stack([first_vector(size, i + 1000 * j, like) for j in range(1, _ROWS + 1)])
            for i, size in enumerate(self._inputs.sizes)
        ]
        return self._inputs.packed(rows, self.zeros(like)).contiguous()

    def improve(self, vectors: Sequence[Tensor], space: Tensor, zeros: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return better vectors, and the space of the next round; one product with every WᵀW."""
        first = self._inputs.packed([v[None] for v in vectors], zeros)  # (L, 1, D)
        space = torch.cat([first, space[:, 1:]], dim=1)  # (L, m, D)
        images = self._applied(self._inputs.parts(space), zeros)
        best = _best(space, images)  # (L, b, m)
        before = space[:, :BLOCK]
        found = _unit(best @ space, otherwise=before)  # (L, b, D)
        pairs = zip(self.steps, self._outputs.parts(best @ images), strict=True)
        products = [_linear(s).adjoint(s.module, u, torch.Size(s.input_shapes[0])) for s, u in pairs]
        away = torch.stack([self._inputs.packed(products, zeros), before], dim=1)  # (L, 2, b, D)
        along = torch.linalg.vecdot(away, found[:, None])[..., None]
        away = torch.addcmul(away, along, found[:, None], value=-1).flatten(1, 2)
        size = torch.linalg.vector_norm(away, dim=2, keepdim=True)
        away = away / size.clamp_min(torch.finfo(away.dtype).tiny)
        return [part[0] for part in self._inputs.parts(found)], torch.cat([found, away], dim=1)

    def norms(self, vectors: Sequence[Tensor], zeros: Tensor) -> Tensor:
        """Return ‖W v‖ of every layer, with gradients to the weights: (L,)."""
        size: Tensor = torch.linalg.vector_norm(self._images(vectors, zeros), dim=1)
        return size

    def product(self, vectors: Sequence[Tensor], zeros: Tensor) -> Tensor:
        """Return the product of ‖W v‖ over all layers, with gradients to the weights: ()."""
        found: Tensor = _NormProduct.apply(self._images(vectors, zeros))  # type: ignore[no-untyped-call]
        return found

    def _images(self, vectors: Sequence[Tensor], zeros: Tensor) -> Tensor:
        """Return W v of every layer, as rows: (L, width)."""
        return self._applied([v[None] for v in vectors], zeros).squeeze(1)

    def _applied(self, inputs: Sequence[Tensor], zeros: Tensor) -> Tensor:
        pairs = zip(self.steps, inputs, strict=True)
        return self._outputs.packed([_linear(step).apply(step.module, v) for step, v in pairs], zeros)


def _linear(step: Step) -> LinearPart[Any]:
    """Return the rule of a layer whose norm is followed: every rule with a vector is one of a linear map."""
    assert isinstance(step.rule, LinearPart)
    return step.rule


def _best(space: Tensor, images: Tensor) -> Tensor:
    """Return coefficients of the vectors that grow most, (L, b, m), from rows and their images."""
    gram = space @ space.mT
    # Rows may agree; their products are rounded.
    gram.diagonal(dim1=1, dim2=2).add_(torch.finfo(gram.dtype).eps ** 0.75)
    factor = torch.linalg.cholesky_ex(gram).L
    growth = torch.linalg.solve_triangular(factor, images @ images.mT, upper=False)
    growth = torch.linalg.solve_triangular(factor.mT, growth, upper=True, left=False)
    power = growth / torch.linalg.matrix_norm(growth, keepdim=True)
    for _ in range(_SQUARINGS):
        power = power @ power
    # What the matrix makes of the last vectors, in their order: one step of orthogonal iteration.
    found: Tensor = torch.linalg.solve_triangular(factor, power[:, :BLOCK], upper=False, left=False)
    return found


def _unit(v: Tensor, otherwise: Tensor) -> Tensor:
    """Return rows of length 1; `otherwise` where nothing is left, or something is not a number."""
    # Entries are finite or no numbers at all: the coefficients are bounded, and so are the rows of a space.
    size = torch.linalg.vector_norm(v, dim=2, keepdim=True)
    return torch.where(size > 0, v / size, otherwise)


class _NormProduct(torch.autograd.Function):
    """The product of the norms of rows, (L, D), with its gradient in a few kernels.

    The gradient of torch's own product looks for zeros, for which a GPU waits. Here it is 0 if a norm is 0.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        """Multiply the norms."""
        norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        product: Tensor = norms.prod()
        ctx.save_for_backward(rows, norms, product)
        return product

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """Return each row times the product, divided by its squared norm."""
        rows, norms, product = ctx.saved_tensors
        squares = norms.square().clamp_min(torch.finfo(norms.dtype).tiny)
        found: Tensor = (gradient * product / squares) * rows
        return found
