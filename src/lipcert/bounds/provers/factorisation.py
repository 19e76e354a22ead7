"""The exact prover: bound ‖A‖₂ from above by a Cholesky factor whose residual is measured.

A power iteration approaches ‖A‖ from below, and even a successful Cholesky factorisation of
cI − AAᵀ proves nothing in floating point. But for ANY matrix L the product
LLᵀ is positive semidefinite, so

$$ \\lambda_{\\max}(AA^T) \\le c + \\|cI - AA^T - LL^T\\|_2, $$

and the last norm is bounded by the computed residual plus the rounding error of every operation that
made it. See docs/proofs.md, theorem 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lipcert.bounds.precision import in_double
from lipcert.bounds.provers.rounding import SAFETY, TINY, U, gamma, ldexp_up, sqrt_up, up
from lipcert.errors import InputError

# Below this side a full eigenvalue solve is quicker than Lanczos iterations.
_DENSE_SOLVE = 512

# Sides of the blocks in which a residual is computed, from the lower triangles alone: for one matrix, a
# batch.
_BLOCK = 512
_BATCH_BLOCK = 64


def spectral_norm_upper(matrix: Tensor) -> float:
    """Bound ‖matrix‖₂ from above, usually within 1e-10 of the truth.

    Example:
        >>> spectral_norm_upper(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        4.00000000000...
    """
    scaled, exponent = scale_to_one(in_double(matrix))  # exact from any shorter float
    if scaled is None:
        return 0.0
    if scaled.shape[0] > scaled.shape[1]:
        scaled = scaled.T
    gram = scaled @ scaled.T  # (n, n), n the smaller side
    square = gram_upper(gram[None], terms=scaled.shape[1], absolute=nu(scaled))
    return ldexp_up(sqrt_up(square), exponent)


def scale_to_one(a: Tensor) -> tuple[Tensor | None, int]:
    """Return (a·2^−e, e) with the largest entry in [½, 1); (None, 0) if a is zero.

    Powers of two make this exact up to underflow, which `TINY` covers.
    """
    if not torch.isfinite(a).all():
        raise InputError("weights: expected finite numbers, got NaN or infinity")
    peak = float(a.abs().max()) if a.numel() else 0.0
    if peak == 0:
        return None, 0
    exponent = math.frexp(peak)[1]
    half = -exponent // 2  # in two steps: 2^1074 itself is not a float
    return a * 2.0**half * 2.0 ** (-exponent - half), exponent


def nu(x: Tensor) -> float:
    """Bound ‖|X|‖₂², the largest of a batch, by min(‖X‖_F², ‖X‖₁‖X‖_∞), which `SAFETY` rounds up."""
    frobenius = torch.linalg.vector_norm(x, dim=(-2, -1)) ** 2
    if x.ndim == 3 and len(x) > 1:  # many small matrices: the rest would cost more than it gains
        return float(frobenius.max())
    x = x.abs()
    return float(torch.minimum(frobenius, x.sum(-2).amax(-1) * x.sum(-1).amax(-1)).max())


def gram_upper(gram: Tensor, terms: int, absolute: float, floor: float = 0.0) -> float:
    """Bound the largest λ_max(AAᵀ) of a batch of computed Gram matrices (F, n, n) from above.

    The entries of A are at most 1, `terms` is the number of products in one entry of the Gram matrix,
    `absolute` bounds ‖|A|‖₂². Below `floor` no tighter bound is computed.
    """
    n = gram.shape[-1]
    gram = gram.tril() + gram.tril(-1).mT  # exactly symmetric, as the theorem requires
    shift, factor, shifted = _factorise(gram, floor)
    error = (
        _residual(shifted, factor)
        + gamma(n + 2) * nu(factor)  # rounding of factor @ factor.T and of the difference
        + gamma(terms + 2) * absolute  # rounding of the Gram matrix
        + 4 * U * shift  # rounding of shift - gram on the diagonal
        + n * (terms + n + 4) * TINY  # underflow
    )
    return up(shift + up(SAFETY * error))


def gram_uppers(gram: Tensor, terms: int, absolute: Tensor) -> Tensor:
    """Bound λ_max as `gram_upper` does, for every matrix of the batch: (F,)."""
    n = gram.shape[-1]
    gram = gram.tril() + gram.tril(-1).mT
    top = torch.linalg.eigvalsh(gram)[:, -1].clamp_min(0.0)
    margin = torch.full_like(top, 8 * n * U)
    while True:
        shift = top * (1 + margin) + TINY
        shifted = -gram
        shifted.diagonal(dim1=-2, dim2=-1).add_(shift[:, None])
        factor, failed = torch.linalg.cholesky_ex(shifted)
        if not failed.any():
            break
        margin = torch.where(failed != 0, 8 * margin, margin)
    error = (
        _row_sums(shifted, factor).amax(-1)
        + gamma(n + 2) * torch.linalg.vector_norm(factor, dim=(-2, -1)) ** 2
        + gamma(terms + 2) * absolute
        + 4 * U * shift
        + n * (terms + n + 4) * TINY
    )
    return torch.nextafter(shift + SAFETY * error, torch.full_like(shift, torch.inf))


def _factorise(gram: Tensor, floor: float) -> tuple[float, Tensor, Tensor]:
    """Return a shift c just above every λ_max, the Cholesky factors of cI − gram, and cI − gram."""
    # A floor is tried first: most of a long batch lies below it.
    top, margin = (0.0 if floor else _largest_eigenvalue(gram)), 8 * gram.shape[-1] * U
    while True:
        shift = max(top * (1 + margin), floor) + TINY
        shifted = -gram
        shifted.diagonal(dim1=-2, dim2=-1).add_(shift)
        factor, failed = torch.linalg.cholesky_ex(shifted)
        if not failed.any():
            return shift, factor, shifted
        if top == 0 or len(gram) > 1:  # above the floor, or missed by the estimate
            before, top = top, max(top, _largest_eigenvalue(gram[failed != 0]))
            margin = margin if top > before else 8 * margin
        else:
            margin *= 8


def _residual(shifted: Tensor, factor: Tensor) -> float:
    """Return ‖shifted − factor·factorᵀ‖_∞, the largest of the batch."""
    return float(_row_sums(shifted, factor).max())


def _row_sums(shifted: Tensor, factor: Tensor) -> Tensor:
    """Sum the rows of |shifted − factor·factorᵀ|: (F, n)."""
    n, side = factor.shape[-1], _BLOCK if len(factor) == 1 else _BATCH_BLOCK
    sums = factor.new_zeros(factor.shape[:-1])  # (F, n) of absolute values, row by row
    for i in range(0, n, side):
        for j in range(0, i + 1, side):
            rows, columns = slice(i, i + side), slice(j, j + side)
            end = min(j + side, n)  # beyond it the factor's rows j are zero
            block = shifted[:, rows, columns] - factor[:, rows, :end] @ factor[:, columns, :end].mT
            block = _symmetric_abs(block) if i == j else block.abs()
            sums[:, rows] += block.sum(-1)
            if j < i:
                sums[:, columns] += block.sum(-2)
    return sums


def _symmetric_abs(x: Tensor) -> Tensor:
    """Return |x|, or |xᵀ| where that is larger: a computed L·Lᵀ is not exactly symmetric, the true one is."""
    return torch.maximum(x.abs(), x.abs().mT)


def _largest_eigenvalue(gram: Tensor) -> float:
    """Estimate the largest eigenvalue, from either side; only the tightness of the bound depends on it."""
    n = gram.shape[-1]
    if gram.is_meta:  # there are no numbers: the cost of a proof is being counted
        return 1.0
    if len(gram) > 4:
        return float(torch.linalg.eigvalsh(_likely_largest(gram))[:, -1].max())
    if n > _DENSE_SOLVE:
        from scipy.sparse.linalg import ArpackError, eigsh  # takes half a second to import

        start = np.cos(np.arange(n, dtype=np.float64))  # fixed, so that proofs are repeatable
        try:
            return max(float(eigsh(_for_scipy(g), k=1, v0=start, return_eigenvectors=False)[0]) for g in gram)
        except ArpackError:
            return float(torch.linalg.eigvalsh(gram)[:, -1].max())
    return float(torch.linalg.eigvalsh(gram)[:, -1].max())


def _for_scipy(gram: Tensor) -> Any:
    """Return a matrix for scipy: its numbers on the CPU, else its products with vectors, made where it is."""
    if gram.device.type == "cpu":
        return gram.numpy()
    from scipy.sparse.linalg import LinearOperator

    def product(v: Any) -> Any:
        return (gram @ torch.from_numpy(np.ascontiguousarray(v).ravel()).to(gram.device)).cpu().numpy()

    return LinearOperator(tuple(gram.shape), matvec=product, dtype=np.float64)


def _likely_largest(gram: Tensor) -> Tensor:
    """Return the four matrices of the batch in which a short power iteration grows most."""
    v = gram.new_ones(gram.shape[0], gram.shape[-1], 1)
    v += 0.5 * torch.cos(torch.arange(gram.shape[-1], dtype=gram.dtype, device=gram.device))[:, None]
    for _ in range(8):
        v = gram @ v
        v = v / torch.linalg.vector_norm(v, dim=1, keepdim=True).clamp_min(TINY)
    growth = torch.linalg.vector_norm(gram @ v, dim=(1, 2))
    return gram[growth.topk(4).indices]
