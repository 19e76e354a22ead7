"""The shared vocabulary: dimension letters and `PairLip`; errors are in errors.py, which needs no torch.

Shapes are written at line ends in these letters: B batch, N classes, D features before the head.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

Shape = tuple[int, ...]

# Rows of the pair table made at once in `PairLip.max`: bounds memory at 1024 x N numbers.
_CHUNK = 1024


class PairLip(NamedTuple):
    """Lipschitz bounds K_ij = features * ||w_i - w_j|| of every difference of two logits.

    A tuple of two tensors, so that it passes through vmap, DDP and compile.

    Example:
        >>> lip = PairLip(features=torch.tensor(2.0), head=torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        >>> lip.rows(torch.tensor([1]))
        tensor([[10.,  0.]])
        >>> lip.max()
        tensor(10.)
    """

    features: Tensor  # () global, or (B,) local: bound of everything before the head
    head: Tensor  # (N, D) rows w_i

    def rows(self, index: Tensor) -> Tensor:
        """K[index_b, j] of shape (B, N)."""
        # From N x N when the batch repeats classes; either way no B x D x N tensor is made.
        if self.head.shape[0] <= index.shape[0]:
            distance = pairwise_distance(self.head, self.head)[index]  # (B, N)
        else:
            distance = pairwise_distance(self.head[index], self.head)  # (B, N)
        return self.features.reshape(-1, 1) * distance

    def singles(self) -> Tensor:
        """K_i = features * ||w_i||, the bound of a single logit: (1 or B, N)."""
        length: Tensor = torch.linalg.vector_norm(self.head, dim=1)  # (N,)
        return self.features.reshape(-1, 1) * length

    def max(self) -> Tensor:
        """K_f, the largest K_ij: a scalar."""
        starts = range(0, self.head.shape[0], _CHUNK)
        farthest = [pairwise_distance(self.head[i : i + _CHUNK], self.head).amax() for i in starts]
        return self.features.amax() * torch.stack(farthest).amax()


def pairwise_distance(a: Tensor, b: Tensor) -> Tensor:
    """||a_i - b_j||, from differences: the a^2 + b^2 - 2ab form cancels when rows are close."""
    if a.dtype in (torch.float16, torch.bfloat16):  # cdist knows neither, and they are too coarse for it
        return pairwise_distance(a.float(), b.float()).to(a.dtype)
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
