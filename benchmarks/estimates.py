"""How far estimated constants lag behind the weights in a fast training, and what they cost a step.

A 4C3F at half width on real CIFAR-10, CLL, Adam at 4e-3, batch 256. Several estimates follow the same
weights; the truth is the Krylov estimate after 100 more products. Writes results/estimates.json.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lipcert.bounds import Bounded
from lipcert.bounds.graph import Step
from lipcert.bounds.linear_map import first_vector
from lipcert.data import load
from lipcert.losses import CLL
from lipcert.models import create
from results import write_table

STEPS, EVERY, SHAPE = 120, 10, (3, 32, 32)
CHOICES = [("power", n) for n in (1, 5, 10, 20)] + [("iterate", n) for n in (3, 5, 8)]


@dataclass
class Follower:
    """One estimate: its vectors, what it cost, how low it was."""

    layers: list[Step]
    method: str
    times: int
    vectors: list[Tensor] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    below: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        like = torch.zeros(())
        self.vectors = [first_vector(layer.input_shapes[0], i, like) for i, layer in enumerate(self.layers)]

    @torch.no_grad()
    def follow(self, times: int) -> None:
        start = time.perf_counter()
        for i, layer in enumerate(self.layers):
            move: Callable[..., Tensor] = getattr(layer.rule, self.method)
            self.vectors[i] = move(layer.module, self.vectors[i], times)
        self.seconds.append(time.perf_counter() - start)

    @torch.no_grad()
    def value(self) -> float:
        norms = [
            layer.rule.estimate(layer.module, v) for layer, v in zip(self.layers, self.vectors, strict=True)
        ]
        return float(torch.stack(norms).prod())


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    data = load("cifar10", split="train")
    model = create("4c3f", num_classes=10, input_shape=SHAPE, width=0.5, gain=0.8)
    bounded, loss = Bounded(model, SHAPE), CLL(eps=0.15, slack=0.15, lam=1e-4)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    layers = list(bounded.vectors())
    followers = [Follower(layers, *choice) for choice in CHOICES]
    truth = Follower(layers, "iterate", 100)
    order, seconds = torch.randperm(len(data)), []
    for i, batch in enumerate(order.split(256)[:STEPS]):
        optimizer.param_groups[0]["lr"] = 4e-3 * min(1.0, (i + 1) / 40)
        x, y = data.floats(batch), data.y[batch]
        start = time.perf_counter()
        logits, lip = bounded(x)
        objective = loss(logits, y, lip).mean() + loss.penalty(lip)
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
        for follower in followers:
            follower.follow(follower.times)
        if i % EVERY == EVERY - 1:
            truth.follow(truth.times)
            for follower in followers:
                follower.below.append(100 * (1 - follower.value() / truth.value()))
    table = []
    for follower in followers:
        cost = 100 * statistics.median(follower.seconds) / statistics.median(seconds)
        name = "power iteration" if follower.method == "power" else "Krylov space"
        low, high = statistics.median(follower.below), max(follower.below)
        table.append([name, str(follower.times), f"{low:.1f}", f"{high:.1f}", f"{cost:.1f}"])
        print(*table[-1], sep="  ")
    note = f"percent; {STEPS} steps, batch 256, one thread, the constant compared every {EVERY} steps"
    titles = ["estimate", "products a step", "low, median", "low, worst", "cost of a step"]
    write_table("estimates", note, titles, table)


if __name__ == "__main__":
    main()
