"""What anyone would write without lipcert: the networks, and a training step with cross-entropy.

The baseline of the other scripts. Nothing here is imported from the library.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MinMax(nn.Module):
    """Channels sorted in pairs."""

    def forward(self, x: Tensor) -> Tensor:
        a, b = x.unflatten(1, (-1, 2)).unbind(2)
        return torch.stack([torch.minimum(a, b), torch.maximum(a, b)], dim=2).flatten(1, 2)


def mlp() -> nn.Sequential:
    """The network of the two moons."""
    return nn.Sequential(
        nn.Linear(2, 10),
        MinMax(),
        nn.Linear(10, 20),
        MinMax(),
        nn.Linear(20, 40),
        MinMax(),
        nn.Linear(40, 40),
        MinMax(),
        nn.Linear(40, 20),
        MinMax(),
        nn.Linear(20, 10),
        MinMax(),
        nn.Linear(10, 2),
    )


def c4f3() -> nn.Sequential:
    """4C3F for CIFAR-10."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        MinMax(),
        nn.Conv2d(32, 32, 4, stride=2, padding=1),
        MinMax(),
        nn.Conv2d(32, 64, 3, padding=1),
        MinMax(),
        nn.Conv2d(64, 64, 4, stride=2, padding=1),
        MinMax(),
        nn.Flatten(),
        nn.Linear(4096, 512),
        MinMax(),
        nn.Linear(512, 512),
        MinMax(),
        nn.Linear(512, 10),
    )


def training_step(
    model: nn.Module, batch: Callable[[], tuple[Tensor, Tensor]], optimizer: torch.optim.Optimizer
) -> Callable[[], None]:
    """Forward, cross-entropy, backward, step."""

    def step() -> None:
        x, y = batch()
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
