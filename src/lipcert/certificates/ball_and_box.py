r"""Bound how much a linear function grows on the overlap of a ball and a box around 0.

For every split g = g' + g'' it is at most what g' gains in the box and g'' in the ball:

$$ \max_{\delta} g\cdot\delta \le \sum_i \max(g'_ia_i, g'_ib_i) + \rho\|g''\|,
   \qquad a \le \delta \le b,\ \|\delta\| \le \rho, \qquad g''_i = \min(\max(g_i, a_i/t), b_i/t) $$

The best t is the one for which the point tg'' lies on the sphere; the bound holds for each.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lipcert.bounds.provers.rounding import SAFETY, TINY, TINY_ROOT, U
from lipcert.certificates.box import Box

# Halvings of the exponent of t, which lies within 2**40 of its least value.
_HALVINGS, _EXPONENTS = 20, 40.0


def largest_growth(g: Tensor, box: Box, ball: Tensor) -> Tensor:
    """Bound the maximum from above: (P,) for functions (P, D), boxes that hold 0, and radii of balls (P,)."""
    length = torch.linalg.vector_norm(g, dim=1)
    in_ball = _within(g, box, _best(g, box, ball, length))
    in_box = g - in_ball
    by_box = torch.where(in_box > 0, in_box * box.high, in_box * box.low).sum(1)
    terms = g.shape[1]
    by_ball = ball * (torch.linalg.vector_norm(in_ball, dim=1) + terms * TINY_ROOT)
    # g itself and g' are rounded: at most 2 units of every entry.
    rounded = 8 * U * ball * (length + terms * TINY_ROOT)
    found: Tensor = SAFETY * (by_box + by_ball + rounded) + terms * TINY
    return found


def _within(g: Tensor, box: Box, t: Tensor) -> Tensor:
    found: Tensor = torch.minimum(torch.maximum(g, box.low / t[:, None]), box.high / t[:, None])
    return found


def _best(g: Tensor, box: Box, ball: Tensor, length: Tensor) -> Tensor:
    """Search the t for which tg'' is as long as the radius of the ball; any positive t would do."""
    least = (ball / length).nan_to_num(1.0, 1.0, 1.0).clamp_min(TINY_ROOT)
    below, above = torch.zeros_like(least), torch.full_like(least, _EXPONENTS)
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        t = least * torch.exp2(middle)
        is_inside = t * torch.linalg.vector_norm(_within(g, box, t), dim=1) <= ball
        below, above = torch.where(is_inside, middle, below), torch.where(is_inside, above, middle)
    return least * torch.exp2(below)
