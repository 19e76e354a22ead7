"""The proved Lipschitz constant of any module, checked against the module itself."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from lipcert.bounds.fidelity.followed import Followed
from lipcert.bounds.fidelity.replay import Replay
from lipcert.bounds.proof import Bound, Effort, prove


def upper(module: nn.Module, input_shape: Sequence[int], effort: Effort = "auto") -> Bound:
    """Prove the L2 Lipschitz constant of a module: never below the truth.

    Example:
        >>> import torch
        >>> layer = nn.Linear(2, 2, bias=False)
        >>> _ = torch.nn.init.eye_(layer.weight)
        >>> upper(nn.Sequential(layer, nn.ReLU()), input_shape=(2,)).value
        1.0000000...
    """
    followed = Followed.of(module, input_shape)
    bound = prove(followed.program, effort)
    Replay(followed, bound).rehearse()
    return bound
