"""Replace layers that derive their weights, or have fixed ones, by ordinary layers with the same outputs."""

from __future__ import annotations

import copy

from torch import nn

from lipcert.nn import FixedLinear
from lipcert.nn.bases.derived import Derived


def plain(model: nn.Module) -> nn.Module:
    """Return a copy in evaluation mode in which derived layers become ordinary ones where possible.

    AOL, Cholesky, Björck, RKO, BCOP, AOC, Frobenius and linear residual layers, dense layers of an orthogonal
    matrix and all heads become nn.Linear, nn.Conv2d or nn.ConvTranspose2d. CPL and SLL become two of them in
    a residual block, dense sandwich layers two with an activation between. SOC and convolutional sandwich,
    Cayley, LOT and BRO layers have no small kernel: they stay, and keep their weights. Certify the model, not
    the copy, whose bounds would multiply.

    Example:
        >>> from lipcert.nn import AOLLinear
        >>> plain(nn.Sequential(AOLLinear(4, 2)))
        Sequential(
          (0): Linear(in_features=4, out_features=2, bias=True)
        )
    """
    found = copy.deepcopy(model).eval()
    if isinstance(found, Derived | FixedLinear):
        return found.plain()
    made: dict[nn.Module, nn.Module] = {}  # a layer that is used twice stays one layer
    for path, module in list(found.named_modules(remove_duplicate=False)):
        if isinstance(module, Derived | FixedLinear):
            parent, _, name = path.rpartition(".")
            made[module] = made.get(module) or module.plain()
            setattr(found.get_submodule(parent), name, made[module])
    return found.eval()
