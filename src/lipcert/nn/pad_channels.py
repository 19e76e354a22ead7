r"""Zero channels added, so that layers that keep the number of channels have enough of them.

$$ y = [x, 0, \dots, 0], \qquad K = 1 $$
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from lipcert.bounds import Constant, rule
from lipcert.errors import InputError


class PadChannels(nn.Module):
    """(B, C, …) ↦ (B, channels, …), zeros after what is there.

    Example:
        >>> import torch
        >>> PadChannels(3)(torch.ones(1, 2))
        tensor([[1., 1., 0.]])
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels

    def forward(self, x: Tensor) -> Tensor:
        """More channels, the same norm."""
        if x.shape[1] > self.channels:
            raise InputError(f"PadChannels: expected at most {self.channels} channels, got {x.shape[1]}")
        return F.pad(x, (0, 0) * (x.ndim - 2) + (0, self.channels - x.shape[1]))

    def extra_repr(self) -> str:
        """Shown by print."""
        return str(self.channels)


@rule(PadChannels, examples=[lambda: (PadChannels(5), (2, 3, 3)), lambda: (PadChannels(2), (2,))])
class PadChannelsRule(Constant):
    """1: zeros add nothing to a distance."""
