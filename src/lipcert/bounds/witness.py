"""Lower bounds of the Lipschitz constant by two points; divided by the proved K they are the tightness."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lipcert.bounds.bounded import binary_as_two


@dataclass(frozen=True)
class Witness:
    """Two inputs between which f_j − f_i changes by `lower` per unit of distance, in float64."""

    lower: float
    x1: Tensor
    x2: Tensor
    i: int
    j: int


def quotients(model: Callable[[Tensor], Tensor], x1: Tensor, x2: Tensor) -> Tensor:
    r"""Return the slope of f_j − f_i between two points for every i, j = argmax f(x₁): (B, N); 0 if x₁ = x₂.

    $$ |(f_j - f_i)(x_1) - (f_j - f_i)(x_2)| / \|x_1 - x_2\| $$
    """
    f1, f2 = binary_as_two(model(x1)), binary_as_two(model(x2))
    j = f1.argmax(dim=1, keepdim=True)
    change = (f1.gather(1, j) - f1) - (f2.gather(1, j) - f2)  # (B, N)
    distance = (x1 - x2).flatten(1).norm(dim=1, keepdim=True)
    apart = distance > 0
    return torch.where(apart, change.abs() / torch.where(apart, distance, 1.0), 0.0)


def search(
    model: nn.Module,
    x1: Tensor,
    x2: Tensor,
    steps: int,
    lr: float = 3e-4,
    limits: tuple[float, float] | None = None,
    is_over: Callable[[], bool] = lambda: False,
) -> Witness:
    """Run Adam on both points of every pair and return the best pair found, evaluated in float64 on the CPU.

    The search is made where the model is, and ends early when `is_over` returns True.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    for p in parameters:
        p.requires_grad_(False)
    try:
        best = _ascend(model, x1, x2, steps, lr, limits, is_over)
    finally:
        for p in parameters:
            p.requires_grad_(True)
    return _witness(model, *best)


def _ascend(
    model: nn.Module,
    x1: Tensor,
    x2: Tensor,
    steps: int,
    lr: float,
    limits: tuple[float, float] | None,
    is_over: Callable[[], bool],
) -> tuple[Tensor, Tensor]:
    a, b = (x.detach().clone().requires_grad_() for x in (x1, x2))
    optimizer = torch.optim.Adam([a, b], lr=lr)
    top, best = x1.new_full((1,), -1.0), (x1[:1].clone(), x2[:1].clone())
    for step in range(steps + 1):
        values = quotients(model, a, b).amax(dim=1)  # (B,)
        # The best stays on the device: reading it at every step would make a GPU wait.
        value, index = values.detach().max(dim=0, keepdim=True)
        better = (value > top).view(-1, *[1] * (a.ndim - 1))
        top = torch.where(value > top, value, top)
        points = (a.detach().index_select(0, index), b.detach().index_select(0, index))
        best = (torch.where(better, points[0], best[0]), torch.where(better, points[1], best[1]))
        if step == steps or is_over():
            break
        a.grad, b.grad = torch.autograd.grad(-values.sum(), [a, b])
        optimizer.step()
        if limits is not None:
            with torch.no_grad():
                a.clamp_(*limits)
                b.clamp_(*limits)
    return best


@torch.no_grad()
def _witness(model: nn.Module, x1: Tensor, x2: Tensor) -> Witness:
    """Evaluate the pair in float64, on a copy of the model on the CPU."""
    exact = copy.deepcopy(model).to("cpu", torch.float64)
    x1, x2 = (x.to("cpu", torch.float64) for x in (x1, x2))
    values = quotients(exact, x1, x2)[0]
    j = int(binary_as_two(exact(x1)).argmax())
    return Witness(float(values.max()), x1[0], x2[0], int(values.argmax()), j)
