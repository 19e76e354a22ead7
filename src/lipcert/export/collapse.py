"""Models for use: layers that derive their weights replaced by ordinary ones with the same outputs."""

from __future__ import annotations

import copy

from torch import nn

from lipcert.nn.bases.derived import Derived


def plain(model: nn.Module) -> nn.Module:
    """A copy in evaluation mode in which derived layers that collapse are ordinary ones.

    AOL, Cholesky and linear residual layers, dense ones of an orthogonal matrix and normalised heads become
    nn.Linear or nn.Conv2d, CPL and SLL two of them in a residual block, dense Sandwich layers two with an
    activation between. SOC and convolutional Sandwich, Cayley, LOT and BRO layers have no small kernel: they
    stay, and keep their weights. Certify the model, not the copy, whose bounds would multiply.

    Example:
        >>> from lipcert.nn import AOLLinear
        >>> plain(nn.Sequential(AOLLinear(4, 2)))
        Sequential(
          (0): Linear(in_features=4, out_features=2, bias=True)
        )
    """
    found = copy.deepcopy(model).eval()
    if isinstance(found, Derived):
        return found.plain()
    made: dict[nn.Module, nn.Module] = {}  # a layer that is used twice stays one
    for path, module in list(found.named_modules(remove_duplicate=False)):
        if isinstance(module, Derived):
            parent, _, name = path.rpartition(".")
            made[module] = made.get(module) or module.plain()
            setattr(found.get_submodule(parent), name, made[module])
    return found.eval()
