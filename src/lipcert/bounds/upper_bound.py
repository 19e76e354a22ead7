"""The proved Lipschitz constant of any module, checked against the module itself."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from lipcert.bounds.arguments import checked_model
from lipcert.bounds.fidelity.followed import Followed
from lipcert.bounds.fidelity.replay import Replay
from lipcert.bounds.proof import Bound, prove
from lipcert.types import Effort


def upper(
    module: nn.Module,
    input_shape: Sequence[int],
    effort: Effort = "auto",
    device: str | torch.device | None = None,
) -> Bound:
    """Prove the L2 Lipschitz constant of a module: never below the truth.

    Large products are computed on `device`, by default where the module is.

    Example:
        >>> import torch
        >>> layer = nn.Linear(2, 2, bias=False)
        >>> _ = torch.nn.init.eye_(layer.weight)
        >>> upper(nn.Sequential(layer, nn.ReLU()), input_shape=(2,)).value
        1.0000000...
    """
    followed = Followed.of(checked_model(module), input_shape, device)
    bound = prove(followed.program, effort)
    Replay(followed, bound).rehearse()
    return bound
