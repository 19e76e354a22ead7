"""The shared vocabulary: dimension letters, words that arguments take, and `PairLip`.

Errors are in errors.py, which needs no torch.

Shapes are written at line ends in these letters: B batch, N classes, D features before the head.
"""

from __future__ import annotations

from functools import reduce
from typing import Literal, NamedTuple

import torch
from torch import Tensor

Shape = tuple[int, ...]

# How much work a proof may take; "tight" is "exact", and then looks at several dense layers together.
Effort = Literal["auto", "exact", "fast", "tight"]

# The paper's; hours of a CPU at most; seconds.
BudgetName = Literal["full", "cpu", "smoke"]

# The number of classes beyond which training takes distances from a matrix product.
MANY = 1024

# Rows of the pair table made at once in `PairLip.max`: bounds memory at 1024 x N numbers.
_CHUNK = 1024


class PairLip(NamedTuple):
    """Lipschitz bounds K_ij = features * ||w_i - w_j|| of every difference of two logits.

    A tuple of tensors, so that it passes through vmap, DDP and compile.

    Example:
        >>> lip = PairLip(features=torch.tensor(2.0), head=torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        >>> lip.rows(torch.tensor([1]))
        tensor([[10.,  0.]])
        >>> lip.max()
        tensor(10.)
    """

    features: Tensor  # () global, (B,) local: bound of everything before the head
    head: Tensor  # (N, D) rows w_i

    def rows(self, index: Tensor) -> Tensor:
        """Return K[index_b, j] of shape (B, N)."""
        # From N x N when the batch repeats classes; either way no B x D x N tensor is made.
        if self.head.shape[0] <= index.shape[0]:
            table = pairwise_distance(self.head, self.head)  # (N, N)
            if self.features.ndim == 0:
                return (self.features * table)[index]
            distance = table[index]  # (B, N)
        elif self.head.shape[0] <= MANY:
            distance = pairwise_distance(self.head[index], self.head)  # (B, N)
        else:
            distance = quick_distance(self.head, index)  # (B, N)
        return self.features.reshape(-1, 1) * distance

    def singles(self) -> Tensor:
        """Return K_i = features * ||w_i||, the bound of a single logit: (1 or B, N)."""
        length: Tensor = torch.linalg.vector_norm(self.head, dim=1)  # (N,)
        return self.features.reshape(-1, 1) * length

    def max(self) -> Tensor:
        """Return K_f, the largest K_ij: a scalar."""
        chunks = torch.split(self.head, _CHUNK) if self.head.shape[0] > _CHUNK else [self.head]
        largest = [pairwise_distance(chunk, self.head).amax() for chunk in chunks]
        features = self.features.amax() if self.features.ndim else self.features
        return features * reduce(torch.maximum, largest)

    def near(self, labels: Tensor, pair: Tensor) -> PairLip:
        """Keep four classes: the two farthest apart of which one is a label, and one more pair (2,)."""
        return PairLip(self.features, self.head[torch.cat([farthest(self.head, labels), pair])])

    def detach(self) -> PairLip:
        """Return the constants without gradients."""
        return PairLip(self.features.detach(), self.head.detach())


def quick_distance(head: Tensor, index: Tensor) -> Tensor:
    """Return ||w_index - w_j|| from one matrix product, for training with many classes: (B, N).

    It takes an eighth of the time of `pairwise_distance`. Its error is a few thousandths of the rows' length:
    rows that nearly agree come out farther apart than they are.
    """
    centred = head - head.detach().mean(0)  # less to cancel
    distance = torch.cdist(centred[index], centred, compute_mode="use_mm_for_euclid_dist")
    return distance.scatter(1, index[:, None], 0.0)


@torch.no_grad()
def farthest(head: Tensor, rows: Tensor) -> Tensor:
    """Return the pair (i, j) of rows of the head that are farthest apart, with i one of `rows`: (2,)."""
    # A matrix product is quick, and its rounding error does not matter for a choice.
    square = torch.linalg.vector_norm(head, dim=1) ** 2  # (N,)
    found = []
    for chunk in torch.split(rows, _CHUNK):
        distance = torch.addmm(square, head[chunk], head.T, alpha=-2) + square[chunk, None]
        size, place = distance.flatten().max(0)
        # Selected, not indexed: an index that is a number on a device makes the program wait for the device.
        label = chunk.index_select(0, place[None] // len(head))
        found.append((size, torch.cat([label, place[None] % len(head)])))
    best = torch.stack([size for size, _ in found]).argmax()
    return torch.stack([pair for _, pair in found]).index_select(0, best[None])[0]


def pairwise_distance(a: Tensor, b: Tensor) -> Tensor:
    """Return ||a_i - b_j|| from differences: the a^2 + b^2 - 2ab form cancels when rows are close."""
    if a.dtype in (torch.float16, torch.bfloat16):  # cdist supports neither, and they are too coarse for it
        return pairwise_distance(a.float(), b.float()).to(a.dtype)
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
