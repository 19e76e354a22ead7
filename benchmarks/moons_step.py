"""One moons training step against the obvious eager cross-entropy step of the same network.

Interleaved, medians, one thread. Run with `make bench`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from timing import interleaved, print_ratios
from torch import nn

from lipcert.recipes import read_recipe
from lipcert.recipes.execution import build
from lipcert.train import Hardware, RunDirectory
from lipcert.train.loop import _Training


def plain_step() -> Callable[[], None]:
    """What anyone would write: forward, cross-entropy, backward, Adam."""
    plan, _ = build(read_recipe("moons-ce"))
    model: nn.Module = plan.model
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = plan.train.x, plan.train.y

    def step() -> None:
        batch = torch.randint(len(x), (100,))
        loss = F.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def lipcert_step(recipe: str) -> Callable[[], None]:
    """A step of `lipcert train`, everything included but the end of an epoch."""
    plan, _ = build(read_recipe(recipe))
    return _Training(plan, RunDirectory(Path(tempfile.mkdtemp())), Hardware("cpu").launch())._advance


def main() -> None:
    torch.set_num_threads(1)
    steps = {"plain": plain_step()} | {r: lipcert_step(r) for r in ("moons-ce", "moons-cll", "moons-gloro")}
    print_ratios(interleaved(steps, rounds=600), "plain")


if __name__ == "__main__":
    main()
