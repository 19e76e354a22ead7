"""One loss for the samples of several models, each with its own numbers."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Hashable, Sequence

from torch import Tensor

from lipcert.losses.base import Loss


def kind(loss: Loss) -> Hashable:
    """Return everything of a loss but its numbers: losses of one kind that stack can be stacked."""
    rest = (
        (f.name, value) for f in dataclasses.fields(loss) if not _is_number(value := getattr(loss, f.name))
    )
    return type(loss), tuple(rest)


def stack_losses(losses: Sequence[Loss], samples: int, like: Tensor) -> tuple[Loss, Loss]:
    """Return two losses for `samples` of each model in turn: one for the values, one for the penalty.

    Example:
        >>> import torch
        >>> from lipcert.losses import LMT
        >>> values, penalty = stack_losses([LMT(eps=0.1), LMT(eps=0.2)], samples=2, like=torch.zeros(()))
        >>> values.eps.T, penalty.eps
        (tensor([[0.1000, 0.1000, 0.2000, 0.2000]]), tensor([0.1000, 0.2000]))
    """
    first = losses[0]
    names = [f.name for f in dataclasses.fields(first) if _is_number(getattr(first, f.name))]
    names += first.derived  # from each loss alone, in Python's precision
    if not names:
        return first, first
    table = like.new_tensor([[getattr(loss, name) for loss in losses] for name in names])
    columns = table[:, :, None].expand(-1, -1, samples).reshape(len(names), -1, 1)
    return _with(first, names, columns), _with(first, names, table)


def _with(loss: Loss, names: Sequence[str], values: Tensor) -> Loss:
    # Skip the constructor, which has checked these numbers already; a cached property is set, not computed.
    made = copy.copy(loss)
    vars(made).update(zip(names, values.unbind(), strict=True))
    return made


def _is_number(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)
