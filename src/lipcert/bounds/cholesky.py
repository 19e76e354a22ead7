"""The exact prover: ‖A‖₂ from above, by a Cholesky factor whose residual is measured.

A power iteration approaches ‖A‖ from below, and even a successful Cholesky factorisation of
cI − AAᵀ proves nothing in floating point. What does prove something: for ANY matrix L the product
LLᵀ is positive semidefinite, so

$$ \\lambda_{\\max}(AA^T) \\le c + \\|cI - AA^T - LL^T\\|_2, $$

and the last norm is bounded by the computed residual plus the rounding of every operation that
made it. Docs: docs/proofs.md, theorem 1.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.sparse.linalg import ArpackError, eigsh
from torch import Tensor

from lipcert.bounds.rounding import SAFETY, TINY, U, gamma, ldexp_up, sqrt_up, up
from lipcert.errors import InputError

# Below this side a full eigenvalue solve is quicker than Lanczos iterations.
_DENSE_SOLVE = 512


def spectral_norm_upper(matrix: Tensor) -> float:
    """Proved upper bound of ‖matrix‖₂, usually within 1e-10 of the truth.

    Example:
        >>> spectral_norm_upper(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        4.00000000000...
    """
    a = matrix.detach().to("cpu", torch.float64)  # exact from any shorter float
    scaled, exponent = scale_to_one(a)
    if scaled is None:
        return 0.0
    if scaled.shape[0] > scaled.shape[1]:
        scaled = scaled.T
    gram = scaled @ scaled.T  # (n, n), n the smaller side
    square = gram_upper(gram, terms=scaled.shape[1], absolute=nu(scaled))
    return ldexp_up(sqrt_up(square), exponent)


def scale_to_one(a: Tensor) -> tuple[Tensor | None, int]:
    """(a·2^−e, e) with the largest entry in [½, 1); (None, 0) if a is zero.

    Powers of two make this exact but for underflow, which `TINY` covers.
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
    """An upper bound of ‖|X|‖₂²: min(‖X‖_F², ‖X‖₁‖X‖_∞), to a relative error `SAFETY` covers."""
    x = x.abs()
    return min(float((x * x).sum()), float(x.sum(0).max()) * float(x.sum(1).max()))


def gram_upper(gram: Tensor, terms: int, absolute: float) -> float:
    """Upper bound of λ_max(AAᵀ) from the computed `gram`, for A with entries of at most 1.

    `terms` is the number of products in one entry of the Gram matrix, `absolute` bounds ‖|A|‖₂².
    """
    n = gram.shape[0]
    gram = gram.tril() + gram.tril(-1).T  # exactly symmetric, as the theorem wants it
    shift, factor, shifted = _factorise(gram)
    residual = shifted - factor @ factor.T
    error = (
        float(residual.abs().sum(1).max())
        + gamma(n + 2) * nu(factor)  # rounding of factor @ factor.T and of the difference
        + gamma(terms + 2) * absolute  # rounding of the Gram matrix
        + 4 * U * shift  # rounding of shift - gram on the diagonal
        + n * (terms + n + 4) * TINY  # underflow
    )
    return up(shift + up(SAFETY * error))


def _factorise(gram: Tensor) -> tuple[float, Tensor, Tensor]:
    """A shift c just above λ_max, the Cholesky factor of cI − gram, and cI − gram."""
    n = gram.shape[0]
    top, margin = _largest_eigenvalue(gram), 8 * n * U
    eye = torch.eye(n, dtype=gram.dtype)
    while True:
        shift = top * (1 + margin) + TINY
        shifted = shift * eye - gram
        factor, failed = torch.linalg.cholesky_ex(shifted)
        if not failed:
            return shift, factor, shifted
        margin *= 8


def _largest_eigenvalue(gram: Tensor) -> float:
    """An estimate, from either side; only the tightness of the bound depends on it."""
    n = gram.shape[0]
    if n > _DENSE_SOLVE:
        try:
            start = np.cos(np.arange(n, dtype=np.float64))  # fixed, so that proofs are repeatable
            return float(eigsh(gram.numpy(), k=1, v0=start, return_eigenvectors=False)[0])
        except ArpackError:
            return float(torch.linalg.eigvalsh(gram)[-1])
    return float(torch.linalg.eigvalsh(gram)[-1])
