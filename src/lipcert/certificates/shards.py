"""Divide work among processes: each takes a part, and all share the results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


def _itself(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Shard:
    """Process `index` of `count`; the default is a single process."""

    index: int = 0
    count: int = 1
    total: Callable[[Tensor], Tensor] = _itself  # the sum over all processes
    first: Callable[[Any], Any] = _itself  # the first process's value

    def mine(self, samples: Tensor) -> Tensor:
        """Return this process's part of some indices; parts differ in length by one at most."""
        return samples.tensor_split(self.count)[self.index]

    def share(self, model: nn.Module) -> None:
        """Give all processes the first one's network: running statistics may differ between processes."""
        # By way of the CPU: a tensor keeps its device where it is received.
        model.load_state_dict(self.first({name: value.cpu() for name, value in model.state_dict().items()}))

    def gathered(self, part: Tensor, where: Tensor, length: int) -> Tensor:
        """Return the parts of all processes in one tensor of `length`, each at its place."""
        if self.count == 1:
            return part
        whole = part.new_zeros(length)
        whole[where] = part
        return self.total(whole)


ALONE = Shard()
