"""Keep an exponential moving average of the weights, which is the result of a training that has one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn

from lipcert.bounds import Bounded


class Average:
    """The moving average of a model's weights: a ← d·a + (1 − d)·w after every step.

    Early on the average would be mostly the first weights, so d grows to its value: (1 + t)/(10 + t) at most.
    Torch's `AveragedModel` keeps a second model, and its d cannot grow; its formula is used.
    """

    def __init__(self, bounded: Bounded, decay: float) -> None:
        self._bounded, self._decay = bounded, decay
        self.weights = [p.detach().clone() for p in bounded.parameters()]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Update the average after the optimiser's step number `step`, from 0."""
        decay = min(self._decay, (1 + step) / (10 + step))
        average = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
        average(self.weights, list(self._bounded.parameters()), step)

    @torch.no_grad()
    def deliver(self) -> None:
        """Write the average into the model."""
        for parameter, average in zip(self._bounded.parameters(), self.weights, strict=True):
            parameter.copy_(average)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Give the model the averaged weights inside this context, then its own again."""
        own = {name: value.clone() for name, value in self._bounded.state_dict().items()}
        self.deliver()
        try:
            yield
        finally:
            self._bounded.load_state_dict(own)

    def load(self, weights: list[Tensor]) -> None:
        """Load the averages of a checkpoint."""
        for mine, saved in zip(self.weights, weights, strict=True):
            mine.copy_(saved)
