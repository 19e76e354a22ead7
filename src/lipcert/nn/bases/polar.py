r"""The polar factor of a matrix by Björck's iteration: the nearest matrix with orthonormal rows or columns.

Björck, Bowie. An Iterative Algorithm for Computing the Best Estimate of an Orthogonal Matrix. SIAM J. Numer.
Anal. 8, 1971. Anil, Lucas, Grosse. Sorting Out Lipschitz Function Approximation. ICML 2019.

$$ W \leftarrow W \sum_{j=0}^{p} \binom{2j}{j} 4^{-j} (I - W^T W)^j, \qquad \|W\|_2 \le 1 \text{ at first} $$

p is the order; p = 1 is W ← W + ½W(I − WᵀW). A step takes a singular value σ ≤ 1 to the first terms of the
series of 1 = σ(1 − (1 − σ²))^−½. They are positive, so W stays a contraction after any number of steps. Order
1 takes every σ ≤ 2 to at most 1, because σ(3 − σ²)/2 lies between −1 and 1 there.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from lipcert.errors import InputError
from lipcert.transforms import is_transformed
from lipcert.waiting import is_read_at_once

# The usual order and number of steps.
ORDER, STEPS = 1, 15

# The power iterations on WWᵀ before the first step.
_POWERS = 4

# Above this ratio of the sides the steps are made on the small product WWᵀ.
_WIDE = 1.5


def check_steps(order: int, steps: int) -> None:
    """Raise unless both are at least 1."""
    if min(order, steps) < 1:
        raise InputError(f"order, steps: expected numbers >= 1, got {order} and {steps}")


def polar(x: Tensor, order: int = ORDER, steps: int = STEPS) -> Tensor:
    """Return almost the polar factor of matrices (…, n, m), a contraction; zero stays zero.

    No step is made that would change nothing but rounding errors, where that is seen without waiting. No
    gradient passes the first division, as the polar factor does not depend on the length of W.

    Example:
        >>> polar(torch.tensor([[0.0, 2.0], [3.0, 0.0]])).round(decimals=4)
        tensor([[0., 1.],
                [1., 0.]])
    """
    rows, columns = x.shape[-2:]
    if rows > columns:
        return polar(x.mT, order, steps).mT
    peak = x.detach().abs().amax((-2, -1), keepdim=True)
    x = x / torch.where(peak > 0, peak, 1.0)  # so that squares neither overflow nor vanish
    gram = _product(x.detach())
    squared = _scale(gram, order)
    x, gram = x * squared.rsqrt(), gram / squared
    if columns > _WIDE * rows and steps > 1:
        # Rounding errors of products with WWᵀ add up; the last step, on W itself, takes them back.
        x = _factor(_product(x), order, steps - 1) @ x
        return _step(x, _product(x.detach()), order)
    for _ in range(steps - 1):
        is_last = _is_last(gram)
        x = _step(x, gram, order, is_last)
        if is_last:
            return x
        gram = _product(x.detach())
    return _step(x, gram, order)


def _product(x: Tensor) -> Tensor:
    """Return WWᵀ."""
    return x @ x.mT


def _step(x: Tensor, gram: Tensor, order: int, is_last: bool = False) -> Tensor:
    """Make one step on W; `gram` is WWᵀ without its gradient."""
    # A custom autograd function also fails under an active transform that does not touch the weights.
    if order > 1 or is_transformed(x) or torch._C._are_functorch_transforms_active():
        return _series(_product(x), order) @ x
    found: Tensor = _Step.apply(x, gram, is_last)  # type: ignore[no-untyped-call]
    return found


class _Step(torch.autograd.Function):
    r"""Compute 1½W − ½WWᵀW with at most three products on the way back, where torch takes four.

    $$ \bar X = \tfrac32 \bar Y - \tfrac12\big(X X^T \bar Y + (\bar Y X^T + X \bar Y^T) X\big) $$
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, gram: Tensor, is_last: bool) -> Tensor:
        ctx.save_for_backward(x, gram)
        ctx.is_last = is_last
        return _added(x, 1.5, gram, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        x, gram = ctx.saved_tensors
        (back,) = gradients
        if torch.is_grad_enabled():  # a second derivative is wanted
            found: Tensor = torch.autograd.grad(_series(_product(x), 1) @ x, x, back, create_graph=True)[0]
            return found, None, None
        both = back @ x.mT
        # WWᵀ is I up to the root of the precision in the last step.
        rest = back if ctx.is_last else _added(back, 1.5, gram, back)
        return _added(rest, 1.0, both + both.mT, x), None, None


def _added(x: Tensor, factor: float, a: Tensor, b: Tensor) -> Tensor:
    """Return factor·x − ½AB in one call."""
    if x.ndim == 2:
        return torch.addmm(x, a, b, beta=factor, alpha=-0.5)
    flat = (part.reshape(-1, *part.shape[-2:]) for part in (x, a, b))
    return torch.baddbmm(*flat, beta=factor, alpha=-0.5).view(x.shape)


def _scale(gram: Tensor, order: int) -> Tensor:
    """Return s² for which no step stretches anything, from WWᵀ; 1 for zero.

    Orders above 1 need s ≥ ‖W‖. A step of order 1 takes every σ/s ≤ 2 to at most 1, so a few power iterations
    will do, with a quarter of ‖WWᵀ‖_∞ as the least.
    """
    if order > 1:
        return squared_norm_above(gram)
    size = gram.abs()
    most = size.sum(-1, keepdim=True).amax(-2, keepdim=True)
    v = size.sum(-1, keepdim=True) / torch.where(most > 0, most, 1.0)
    for _ in range(_POWERS):
        v = gram @ v
        v = v / torch.linalg.vector_norm(v, dim=-2, keepdim=True).clamp_min(torch.finfo(v.dtype).tiny)
    norm = torch.linalg.vector_norm(gram @ v, dim=-2, keepdim=True)
    # Power iteration ends below the norm, which the step allows.
    found = torch.maximum(torch.minimum(norm, most), most / 4)
    return torch.where(found > 0, found, 1.0)


def squared_norm_above(gram: Tensor) -> Tensor:
    """Bound ‖G‖₂ of symmetric G by the smaller one of ‖G‖_∞ and ‖G⁴‖_F^¼, but for rounding; 1 for zero."""
    rows = gram.abs().sum(-1).amax(-1)[..., None, None]
    power, bound = gram, torch.ones_like(rows)
    for root in (1.0, 0.5, 0.25):
        size = torch.linalg.matrix_norm(power, keepdim=True)
        bound = bound * size**root
        power = power / torch.where(size > 0, size, 1.0)
        power = power @ power if root > 0.25 else power
    least = torch.minimum(rows, bound)
    return torch.where(least > 0, least * (1 + 1e-5), 1.0)


def _factor(gram: Tensor, order: int, steps: int) -> Tensor:
    """Return the product of the series of all steps, polynomials in WWᵀ that commute."""
    found = _series(gram, order)
    step = found
    for _ in range(steps - 1):
        if _is_last(gram):
            break
        gram = step @ gram @ step
        step = _series(gram, order)
        found = step @ found
    return found


def _series(gram: Tensor, order: int) -> Tensor:
    """Return Σ C(2j, j) 4^−j (I − G)^j up to the order, by Horner's rule."""
    eye = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    rest = eye - gram
    found = eye
    for j in range(order, 0, -1):
        # The quotient of two coefficients: C(2j, j) 4^−j = C(2j − 2, j − 1) 4^(1−j) · (2j − 1)/2j.
        share = (2 * j - 1) / (2 * j)
        found = eye + share * (rest if j == order else rest @ found)
    return found


def _is_last(gram: Tensor) -> bool:
    """Return whether one more step reaches the limit, as far as the precision goes: δ becomes ⅜δ²."""
    is_unread = gram.is_meta or not is_read_at_once(gram)
    if is_unread or is_transformed(gram) or torch._C._are_functorch_transforms_active():
        return False
    eye = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    off = torch.linalg.matrix_norm(gram.detach() - eye).amax()
    return bool(off < math.sqrt(torch.finfo(gram.dtype).eps) / 2)
