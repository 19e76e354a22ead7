"""Networks that were not trained to resist, for attacks that must succeed."""

from __future__ import annotations

from typing import cast

import torch
from torch import nn

from lipcert.attack.target import Target
from lipcert.certificates.certificate import Rounding
from lipcert.certificates.certifier import certifier

BOUNDS = (0.0, 1.0)


def centred(*layers: nn.Module) -> nn.Sequential:
    """Return a network whose classes tie in the middle of the unit cube, so that all of them occur."""
    model = nn.Sequential(*layers)
    first, last = cast(nn.Linear, model[0]), cast(nn.Linear, model[-1])
    with torch.no_grad():
        last.bias.sub_(model(torch.full((1, first.in_features), 0.5))[0])
    return model


def small_network(classes: int) -> nn.Sequential:
    """Return a network of two dense layers, always the same."""
    torch.manual_seed(0)
    return centred(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, classes))


def unprotected(classes: int, rounding: Rounding = "float64") -> Target:
    """Return 64 samples of a network that was not trained to resist."""
    model = small_network(classes)
    x = torch.rand(64, 6, generator=torch.Generator().manual_seed(1))
    return Target.of(model, certifier(model, (6,)), x, rounding, BOUNDS)
