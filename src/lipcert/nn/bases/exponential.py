"""The exponential of a square matrix, for training: quicker to differentiate than torch's.

The series of degree 8 at A/2^s, squared s times. s follows the norm of A. Where a program would have to wait
for that norm, squarings that are not needed are made and left out.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lipcert.waiting import is_read_at_once

# Up to this size, the series of degree 8 has an error of 1e-11.
_REACH = 0.25

# The squarings made where their number is not read: enough for a size of 1024.
_MOST = 12


def exponential(a: Tensor) -> Tensor:
    """Return exp(a) to 1e-9 for a skew-symmetric matrix; NaN where unread squarings are too few.

    Example:
        >>> exponential(torch.tensor([[0.0, -1.0], [1.0, 0.0]]))  # cos 1, sin 1
        tensor([[ 0.5403, -0.8415],
                [ 0.8415,  0.5403]])
    """
    square = a @ a
    size = torch.linalg.matrix_norm(square.detach(), 1).sqrt()  # ≥ the largest |eigenvalue|
    needed = torch.frexp(size / _REACH).exponent.clamp_min(0)
    if is_read_at_once(a):
        found = _series(a, square, needed)
        for _ in range(int(needed)):
            found = found @ found
        return found
    found = _series(a, square, needed)
    for i in range(_MOST):
        found = torch.where(i < needed, found @ found, found)
    return torch.where(needed <= _MOST, found, math.nan)


def _series(a: Tensor, square: Tensor, halvings: Tensor) -> Tensor:
    """Return the series at a/2^halvings."""
    half = torch.ldexp(a.new_ones(()), -halvings)
    b, b2 = a * half, square * (half * half)
    b3 = b2 @ b
    c = [1 / math.factorial(j) for j in range(9)]
    eye = torch.eye(len(a), dtype=a.dtype, device=a.device)
    inner = c[3] * eye + c[4] * b + c[5] * b2 + b3 @ (c[6] * eye + c[7] * b + c[8] * b2)
    return eye + b + c[2] * b2 + b3 @ inner
