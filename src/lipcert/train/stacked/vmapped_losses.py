"""The losses of several models in one call, by vmap: a loss is written for one model and stays as it is."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Hashable, Iterator, Sequence
from functools import cache, cached_property

import torch
from torch import Tensor

from lipcert.losses.base import Loss
from lipcert.types import PairLip


def kind(loss: Loss) -> Hashable:
    """Return all of a loss but its numbers: losses of one kind can be one call."""
    return type(loss), tuple(_mark(getattr(loss, f.name)) for f in dataclasses.fields(loss))


def _mark(value: object) -> Hashable:
    if _is_number(value):
        return float
    return value if isinstance(value, Hashable) else id(value)


def understood_by_vmap(losses: Sequence[Loss], logits: Tensor, lip: PairLip) -> bool:
    """Return whether losses of one kind can be one call: not if they ask for the value of a tensor."""
    labels = torch.zeros_like(logits[..., 0], dtype=torch.int64)
    try:
        _vmapped(losses, list(_numbers(losses[0])), logits, labels, lip)
    except (RuntimeError, TypeError, ValueError):  # if anything else is wrong, a call without vmap says so
        return False
    return True


def values_and_penalties(
    losses: Sequence[Loss], logits: Tensor, labels: Tensor, lip: PairLip
) -> tuple[Tensor, Tensor]:
    """Compute the values of the samples (M, B), and the penalties (M,), of losses of one kind.

    Example:
        >>> from lipcert.losses import LMT
        >>> logits, labels = torch.zeros(2, 1, 2), torch.zeros(2, 1, dtype=torch.int64)
        >>> lip = PairLip(torch.ones(2), torch.eye(2).expand(2, 2, 2))
        >>> values_and_penalties([LMT(eps=0.1), LMT(eps=0.2)], logits, labels, lip)[0].T
        tensor([[0.7664, 0.8445]])
    """
    first = losses[0]
    if len(losses) == 1:
        its = PairLip(lip.features[0], lip.head[0])
        return first(logits[0], labels[0], its)[None], first.penalty(its)[None]
    others = [loss for loss in losses if loss is not first]
    names = [
        name
        for name in (_numbers(first) if others else ())
        if any(getattr(loss, name) != getattr(first, name) for loss in others)
    ]
    return _vmapped(losses, names, logits, labels, lip)


def _vmapped(
    losses: Sequence[Loss], names: Sequence[str], logits: Tensor, labels: Tensor, lip: PairLip
) -> tuple[Tensor, Tensor]:
    """Call the first loss for every model, with the numbers of these names from the model's own loss."""

    def of_one(
        logits: Tensor, labels: Tensor, lip: PairLip, numbers: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor]:
        # Past the constructor, which has checked these numbers; a cached property is found, not computed.
        loss = copy.copy(losses[0])
        vars(loss).update(zip(names, numbers, strict=True))
        return loss(logits, labels, lip), loss.penalty(lip)

    # Beside tensors of lower precision, 0-dim tensors of float64 act as Python's numbers do.
    rows = [[getattr(loss, name) for loss in losses] for name in names]
    table = torch.tensor(rows, dtype=torch.float64, device=logits.device)
    both: tuple[Tensor, Tensor] = torch.vmap(of_one)(logits, labels, lip, tuple(table))
    return both


def _numbers(loss: Loss) -> Iterator[str]:
    """Yield the names of a loss's numbers, given and derived: cached properties, in Python's precision."""
    for name in _possible_numbers(type(loss)):
        if _is_number(getattr(loss, name)):
            yield name


@cache
def _possible_numbers(loss: type[Loss]) -> list[str]:
    fields = [field.name for field in dataclasses.fields(loss)]
    return fields + [name for name in dir(loss) if isinstance(getattr(loss, name), cached_property)]


def _is_number(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)
