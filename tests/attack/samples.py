"""Networks that were not trained to resist, for attacks that must succeed."""

from __future__ import annotations

import torch
from torch import nn

from lipcert import certifier
from lipcert.attack.target import Target
from lipcert.certificates.certificate import Rounding

BOUNDS = (0.0, 1.0)


def centred(*layers: nn.Module) -> nn.Sequential:
    """A network whose classes tie in the middle of the unit cube, so that all of them occur."""
    model = nn.Sequential(*layers)
    with torch.no_grad():
        model[-1].bias -= model(torch.full((1, model[0].in_features), 0.5))[0]
    return model


def network(classes: int) -> nn.Sequential:
    torch.manual_seed(0)
    return centred(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, classes))


def unprotected(classes: int, rounding: Rounding = "float64") -> Target:
    """64 samples of a network that was not trained to resist."""
    model = network(classes)
    x = torch.rand(64, 6, generator=torch.Generator().manual_seed(1))
    return Target.of(model, certifier(model, (6,)), x, rounding, BOUNDS)
