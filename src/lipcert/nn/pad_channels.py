r"""Add zero channels, so that layers that keep the number of channels have enough of them.

$$ y = [x, 0, \dots, 0], \qquad K = 1 $$
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds import Constant, rule
from lipcert.errors import InputError


class PadChannels(nn.Module):
    """Add zero channels after the given ones: (B, C, …) to (B, channels, …).

    Example:
        >>> import torch
        >>> PadChannels(3)(torch.ones(1, 2))
        tensor([[1., 1., 0.]])
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels

    def forward(self, x: Tensor) -> Tensor:
        """Append zero channels; the norm stays."""
        if x.shape[1] > self.channels:
            raise InputError(f"PadChannels: expected at most {self.channels} channels, got {x.shape[1]}")
        return F.pad(x, (0, 0) * (x.ndim - 2) + (0, self.channels - x.shape[1]))

    def extra_repr(self) -> str:
        """Return the text that print shows."""
        return str(self.channels)


@rule(PadChannels, examples=[lambda: (PadChannels(5), (2, 3, 3)), lambda: (PadChannels(2), (2,))])
class PadChannelsRule(Constant):
    """The constant is 1: zeros add nothing to a distance."""
