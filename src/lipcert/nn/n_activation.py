r"""N-activation: slopes 1, −1 and 1 between two learned places per channel, so gradients keep their norm.

Prach, Lampert. 1-Lipschitz Neural Networks are more expressive with N-Activations. arXiv 2311.06103, 2023.

$$ N(x) = \begin{cases} x - 2\theta_1 & x \le \theta_1\\ -x & \theta_1 \le x \le \theta_2\\
   x - 2\theta_2 & x \ge \theta_2 \end{cases} \;=\; x - 2 \min(\max(x, \theta_1), \theta_2) $$

The learned places count in ascending order, whichever is which.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lipcert.bounds import rule
from lipcert.bounds.rules.pointwise import Smooth
from lipcert.errors import InputError


def n_activation(x: Tensor, theta: Tensor) -> Tensor:
    """Return N(x) for channels in dimension 1, with the places (C, 2).

    Example:
        >>> n_activation(torch.tensor([[-3.0], [0.5], [2.0]]), torch.tensor([[-1.0, 1.0]])).flatten()
        tensor([-1.0000, -0.5000,  0.0000])
    """
    shape = (-1, *[1] * (x.ndim - 2))
    low, high = (places.view(shape) for places in (theta.amin(1), theta.amax(1)))
    return x - 2 * torch.minimum(torch.maximum(x, low), high)


class NActivation(nn.Module):
    """Fold every channel at two learned places, initially −1 and 0, which is |x| from −1 on."""

    def __init__(self, channels: int, first: tuple[float, float] = (-1.0, 0.0)) -> None:
        super().__init__()
        if channels < 1:
            raise InputError(f"channels: expected at least 1, got {channels}")
        self.theta = nn.Parameter(torch.tensor([first] * channels))

    def forward(self, x: Tensor) -> Tensor:
        """Return the folded input."""
        if x.shape[1] != len(self.theta):
            raise InputError(f"NActivation: expected {len(self.theta)} channels, got {x.shape[1]}")
        return n_activation(x, self.theta)

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return f"{len(self.theta)}"


@rule(
    NActivation, examples=[lambda: (NActivation(6), (6,)), lambda: (NActivation(2, (0.7, -0.3)), (2, 3, 3))]
)
class NActivationRule(Smooth):
    """The constant is 1: every slope is 1 or −1."""
