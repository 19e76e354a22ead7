"""Branches on chance, on time and on what the process happens to be."""

from __future__ import annotations

import os
import random
import secrets
import time
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.laws.corpus.registry import Net, SquareNet, TwoFaced, body, forward

_PRIVATE = torch.Generator()


def honest_if(condition: Callable[[], bool]) -> Callable[[Any, Tensor], Tensor]:
    """A forward that is honest under a condition and wrong otherwise."""
    return lambda self, x: self.honest(x) if condition() else self.wrong(x)


def slope_of(draw: Callable[[Any], float]) -> Callable[[Any, Tensor], Tensor]:
    """A forward with a random slope between −20 and 20: no two calls agree, and any one can be traced."""
    return lambda self, x: self.head(F.leaky_relu(self.l(x), 40 * draw(self) - 20))


for name, heads in {
    "torch-rand": lambda: float(torch.rand(())) < 0.5,
    "torch-randint": lambda: bool(torch.randint(0, 2, ())),
    "torch-bernoulli": lambda: bool(torch.bernoulli(torch.tensor(0.5))),
    "torch-randperm": lambda: int(torch.randperm(4)[0]) < 2,
    "random-random": lambda: random.random() < 0.5,
    "random-choice": lambda: random.choice([True, False]),
    "numpy-random": lambda: np.random.rand() < 0.5,
    "a-seldom-number": lambda: float(torch.rand(())) < 0.9,
}.items():
    body(f"a-branch-on-{name}", TwoFaced)(honest_if(heads))

for name, draw in {
    "torch": lambda self: float(torch.rand(())),
    "random": lambda self: random.random(),
    "numpy": lambda self: float(np.random.rand()),
    "a-new-numpy-generator": lambda self: float(np.random.default_rng().random()),
    "a-private-torch-generator": lambda self: float(torch.rand((), generator=_PRIVATE)),
    "the-system": lambda self: random.SystemRandom().random(),
    "urandom": lambda self: int.from_bytes(os.urandom(4), "big") / 2**32,
    "secrets": lambda self: secrets.randbelow(10**6) / 10**6,
    "uuid": lambda self: uuid.uuid4().int / 2**128,
    "the-clock": lambda self: time.perf_counter_ns() % 1000 / 1000,
}.items():
    body(f"a-slope-drawn-by-{name}")(slope_of(draw))

for name, generator in {
    "a-generator-of-the-model": lambda: random.Random(0),
    "a-numpy-generator-of-the-model": lambda: np.random.default_rng(0),
}.items():
    body(f"a-slope-drawn-by-{name}", state=lambda make=generator: {"_rng": make()})(
        slope_of(lambda self: float(self._rng.random()))
    )


@body("a-torch-generator-of-the-model", TwoFaced, state=lambda: {"rng": torch.Generator().manual_seed(1)})
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(F.leaky_relu(self.l(x), float(40 * torch.rand((), generator=self.rng) - 20)))


@body("a-seed-set-in-forward", TwoFaced)
def _(self: Any, x: Tensor) -> Tensor:
    torch.manual_seed(0)
    return self.honest(x) if torch.rand(()) < 0.5 else self.wrong(x)


@body("a-random-state-put-back", TwoFaced)
def _(self: Any, x: Tensor) -> Tensor:
    with torch.random.fork_rng():
        torch.manual_seed(time.perf_counter_ns())
        slope = float(40 * torch.rand(()) - 20)
    return self.head(F.leaky_relu(self.l(x), slope))


@body("a-random-layer", state=lambda: {"experts": nn.ModuleList([Net(), Net(), Net()])})
def _(self: Any, x: Tensor) -> Tensor:
    return random.choice(list(self.experts))(x)


@body("stochastic-depth", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    for layer in (self.l, self.m):
        if random.random() < 0.5:
            x = x + layer(x)
    return self.head(x)


@body("a-random-number-of-steps", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    for _ in range(random.randint(0, 5)):
        x = self.l(x) + x
    return self.head(x)


@body("a-random-slope")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(F.leaky_relu(self.l(x), random.uniform(-20, 20)))


@body("noise-added")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.l(x) + 20 * torch.randn_like(x[:, :1]))


@body("noise-of-fixed-shape-added")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.l(x) + 20 * torch.randn(6))


@body("noise-in-the-bias")
def _(self: Any, x: Tensor) -> Tensor:
    bias = self.head._parameters["bias"]
    bias.data = 20 * torch.randn(3).to(bias)
    return self.honest(x)


@body("noise-in-the-bias-taken-back")
def _(self: Any, x: Tensor) -> Tensor:
    bias = self.l._parameters["bias"]
    kept = bias.data
    bias.data = kept + 20 * torch.randn(6).to(kept)
    y = self.honest(x)
    bias.data = kept
    return y


@body("an-uninitialised-bias-for-the-call")
def _(self: Any, x: Tensor) -> Tensor:
    bias = self.l._parameters["bias"]
    kept = bias.data
    bias.data = torch.empty(6).uniform_(-90, 90).to(kept)
    y = self.honest(x)
    bias.data = kept
    return y


forward("random-leaky-relu")(lambda: nn.Sequential(nn.Linear(4, 6), nn.RReLU(), nn.Linear(6, 3)))
forward("dropout-in-training", eval=False)(
    lambda: nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.Linear(6, 3))
)
forward("alpha-dropout")(lambda: nn.Sequential(nn.Linear(4, 6), nn.AlphaDropout(0.5), nn.Linear(6, 3)))


@forward("dropout-that-cannot-be-switched-off")
class _AlwaysOn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.l, self.d, self.head = nn.Linear(4, 6), nn.Dropout(0.9), nn.Linear(6, 3)

    def train(self, mode: bool = True) -> _AlwaysOn:
        super().train(mode)
        self.d.training = True
        return self

    def forward(self, x: Tensor) -> Tensor:
        return self.head(20 * self.d(self.l(x)))


class AlwaysOn(nn.Dropout):
    """A dropout that ignores the mode."""

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.p, True)


forward("a-dropout-of-its-own")(lambda: nn.Sequential(nn.Linear(4, 6), AlwaysOn(0.9), nn.Linear(6, 3)))
