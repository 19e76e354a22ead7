"""How far estimated constants lag behind the weights in training, and what they cost a step.

`python benchmarks/estimates.py RUN`: a 4C3F on real CIFAR-10 with CLL, batch 128, from its first weights at a
learning rate of 4e-3 and from those of a finished run at 1e-3 and 1e-4. Several estimates follow the same
weights; the truth is the best of all of them after 100 more products. Writes results/estimates.json.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from lipcert.bounds import Bounded
from lipcert.bounds.krylov import first_vector
from lipcert.bounds.tracing.program import Step
from lipcert.certificates.loading import load as load_model
from lipcert.data import Dataset, load
from lipcert.losses import CLL
from lipcert.models import create
from results import write_table

STEPS, BEGIN, EVERY, BATCH, SHAPE = 150, 50, 10, 128, (3, 32, 32)
# Method, products, steps until it is a layer's turn again.
CHOICES = [("power", 1, 1), ("power", 5, 1), ("power", 10, 1)]
CHOICES += [("iterate", 3, 1), ("iterate", 5, 1), ("iterate", 8, 1), ("iterate", 4, 2), ("iterate", 5, 3)]


@dataclass
class Follower:
    """One estimate: its vectors, what it cost, how low it was."""

    layers: list[Step]
    method: str
    products: int
    turns: int
    vectors: list[Tensor] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    below: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        like = torch.zeros(())
        self.vectors = [first_vector(layer.input_shapes[0], i, like) for i, layer in enumerate(self.layers)]

    @torch.no_grad()
    def follow(self, step: int) -> None:
        start = time.perf_counter()
        for i in range(step % self.turns, len(self.layers), self.turns):
            layer = self.layers[i]
            self.vectors[i] = getattr(layer.rule, self.method)(layer.module, self.vectors[i], self.products)
        self.seconds.append(time.perf_counter() - start)

    @torch.no_grad()
    def value(self) -> float:
        pairs = zip(self.layers, self.vectors, strict=True)
        return float(torch.stack([layer.rule.estimate(layer.module, v) for layer, v in pairs]).prod())

    def row(self, seconds: list[float]) -> list[str]:
        name = "power iteration" if self.method == "power" else "Krylov space"
        cost = 100 * statistics.mean(self.seconds) / statistics.mean(seconds)
        low = [f"{statistics.median(self.below):.1f}", f"{max(self.below):.1f}"]
        return [name, str(self.products), str(self.turns), *low, f"{cost:.1f}"]


def measure(model: nn.Module, rate: float, data: Dataset) -> list[list[str]]:
    """Rows for a training from these weights."""
    bounded, loss = Bounded(model, SHAPE), CLL(eps=0.15, slack=0.15, lam=1e-4)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    layers = list(bounded.vectors())
    followers = [Follower(layers, *choice) for choice in CHOICES]
    truth, seconds = Follower(layers, "iterate", 100, 1), []
    order = torch.randperm(len(data))
    for i, batch in enumerate(order.split(BATCH)[:STEPS]):
        optimizer.param_groups[0]["lr"] = rate * min(1.0, (i + 1) / 40)
        x, y = data.floats(batch), data.y[batch]
        start = time.perf_counter()
        logits, lip = bounded(x)
        objective = loss(logits, y, lip).mean() + loss.penalty(lip)
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
        for follower in followers:
            follower.follow(i)
        if i >= BEGIN and i % EVERY == EVERY - 1:
            truth.follow(0)
            most = max(f.value() for f in [truth, *followers])
            for follower in followers:
                follower.below.append(100 * (1 - follower.value() / most))
    return [follower.row(seconds) for follower in followers]


def main(run: str) -> None:
    torch.set_num_threads(2)
    torch.manual_seed(1)
    data = load("cifar10", split="train")
    table = []
    for weights, rate in (("first", 4e-3), ("trained", 1e-3), ("trained", 1e-4)):
        fresh = create("4c3f", num_classes=10, input_shape=SHAPE, gain=0.8)
        for row in measure(load_model(run) if weights == "trained" else fresh, rate, data):
            table.append([weights, f"{rate:g}", *row])
            print(*table[-1], sep="  ", flush=True)
    note = f"percent; {STEPS} steps, batch {BATCH}, two threads, the constant compared every {EVERY} steps"
    titles = ["weights", "learning rate", "estimate", "products", "every … steps"]
    write_table("estimates", note, [*titles, "low, median", "low, worst", "cost of a step"], table)


if __name__ == "__main__":
    main(*sys.argv[1:])
