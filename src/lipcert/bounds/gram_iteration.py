"""Power iteration for small matrices, by products with WᵀW itself."""

from __future__ import annotations

import torch
from torch import Tensor

# Sides up to which WᵀW is quicker to make than to avoid, and products between two normalisations:
# a normalised Gram matrix shrinks the vector by at most 1/side each time.
SMALL = 128
_BURST = 5


def improved(matrices: Tensor, vectors: Tensor, times: int) -> Tensor:
    """Improve unit vectors (…, in, 1) of matrices (…, out, in), by as many products with WᵀW."""
    gram = matrices.mT @ matrices
    gram /= torch.linalg.vector_norm(gram, dim=(1, 2), keepdim=True).clamp_min_(torch.finfo(gram.dtype).tiny)
    for start in range(0, times, _BURST):
        image = vectors
        for _ in range(min(_BURST, times - start)):
            image = gram @ image
        size = torch.linalg.vector_norm(image, dim=1, keepdim=True)
        # A vector that vanishes (W = 0) is kept.
        vectors = torch.where((size > 0) & (size < torch.inf), image / size, vectors)
    return vectors
