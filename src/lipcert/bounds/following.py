"""Layers that track their own norms: once per training step, for any number of uses of their weights.

A layer such as CPL keeps vectors that follow its weights, and improves them by `follow()` at every call in
training mode. `Bounded` knows where a step begins, so it calls `follow()` itself and holds the layers still
for the rest of the step: all pieces of a batch then see the same weights.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import nn

from lipcert.bounds.contract import RULES


@runtime_checkable
class Follower(Protocol):
    """A layer that tracks its norms."""

    def follow(self) -> None:
        """Improve the vectors."""


class _Held(threading.local):
    yes = False


_HELD = _Held()


def followers_in(model: nn.Module) -> list[Follower]:
    """Return the layers of a model that track their norms; a user's own `follow` is left alone."""
    return [module for module in model.modules() if type(module) in RULES and isinstance(module, Follower)]


def may_follow() -> bool:
    """Return whether a layer improves its own vectors: not if held, nor if a backward pass reruns it."""
    return not _HELD.yes and torch._C._current_graph_task_id() == -1


@contextlib.contextmanager
def one_step(followers: Sequence[Follower], first: bool) -> Iterator[None]:
    """Let the layers follow once if this is the first piece of a step, then hold them still."""
    if first:
        with torch.no_grad():
            for layer in followers:
                layer.follow()
    before, _HELD.yes = _HELD.yes, True
    try:
        yield
    finally:
        _HELD.yes = before
