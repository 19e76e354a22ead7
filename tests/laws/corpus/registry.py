"""The table of forwards: one entry per way to write a model, and small networks to write them with."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

Builder = Callable[[], nn.Module]
Forward = Callable[[Any, Tensor], Any]
B = TypeVar("B", bound=Builder)
VECTOR, IMAGE = (4,), (2, 6, 6)


@dataclass(frozen=True)
class Entry:
    """One way to write a model, and what the laws expect of it."""

    name: str
    theme: str
    build: Builder
    shape: tuple[int, ...] = VECTOR
    accepted: bool | None = None  # None: refused or sound; True: accepted and sound; False: refused
    unsafe_to_run: bool = False  # its forward raises `RanError` on numbers, in place of harming the process
    eval: bool = True  # whether the law calls `eval()` before anything else

    def model(self, seed: int = 0) -> nn.Module:
        """Build the model from fixed random states."""
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's, about functions it no longer likes
            model = self.build()
        return model.eval() if self.eval else model


FORWARDS: dict[str, Entry] = {}


def forward(name: str, **expected: Any) -> Callable[[B], B]:
    """Register a function, or a class, that makes a model; `expected` are fields of `Entry`."""

    def add(build: B) -> B:
        if name in FORWARDS:
            raise ValueError(f"{name}: there is an entry of this name already")
        theme = expected.pop("theme", build.__module__.rpartition(".")[2])
        FORWARDS[name] = Entry(name, theme, build, **expected)
        return build

    return add


def body(
    name: str,
    base: type[nn.Module] | None = None,
    state: Callable[[], dict[str, Any]] = dict,
    **expected: Any,
) -> Callable[[Forward], Forward]:
    """Register a forward written as a function (self, x); `self` is a `base` with attributes `state()`."""
    parent = Net if base is None else base

    def add(function: Forward) -> Forward:
        def build() -> nn.Module:
            kind = type("Written", (parent,), {"forward": function, "__module__": function.__module__})
            model: nn.Module = kind()
            for key, value in state().items():
                setattr(model, key, value)
            return model

        build.__module__ = function.__module__
        if parent in (ConvNet, BatchNormNet):
            expected.setdefault("shape", IMAGE)
        forward(name, **expected)(build)
        return function

    return add


class RanError(BaseException):
    """A forward that must be refused before it runs was run. Nothing that catches `Exception` hides it."""


def halt(x: object) -> None:
    """Raise when a forward gets numbers."""
    if isinstance(x, Tensor) and x.device.type != "meta":
        raise RanError


class Net(nn.Module):
    """4 → 6 → 3, and `wrong`, which contradicts its predictions and is twenty times as steep."""

    def __init__(self) -> None:
        super().__init__()
        self.l = nn.Linear(4, 6)
        self.act = nn.ReLU()
        self.head = nn.Linear(6, 3)
        torch.nn.init.uniform_(self.l.weight, -1, 1)
        torch.nn.init.uniform_(self.head.weight, -1, 1)

    def honest(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.act(self.l(x)))
        return logits

    def wrong(self, x: Tensor) -> Tensor:
        return -20 * self.honest(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.honest(x)


class TwoFaced(Net):
    """A `Net` whose `wrong` consists of layers with rules: either way can be traced."""

    def __init__(self) -> None:
        super().__init__()
        self.opposite = nn.Linear(6, 3)
        self.opposite.weight.data = -20 * self.head.weight.data
        self.opposite.bias.data = -20 * self.head.bias.data

    def wrong(self, x: Tensor) -> Tensor:
        logits: Tensor = self.opposite(self.act(self.l(x)))
        return logits


class SquareNet(Net):
    """4 → 4 → 3, with a layer that fits several times."""

    def __init__(self) -> None:
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.m = nn.Linear(4, 4)
        self.head = nn.Linear(4, 3)


class LeakyNet(Net):
    """With an activation that has a setting."""

    def __init__(self) -> None:
        super().__init__()
        self.act: nn.Module = nn.LeakyReLU(0.1)


class DropoutNet(Net):
    """With a dropout `d` before the last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.d = nn.Dropout(0.9)

    def honest(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.d(self.act(self.l(x))))
        return logits


class ConvNet(Net):
    """A convolution of an image (2, 6, 6), and 3 classes."""

    def __init__(self, conv: nn.Module | None = None, size: int | None = None) -> None:
        super().__init__()
        self.l: nn.Module = conv or nn.Conv2d(2, 3, 3, padding=1)
        with torch.no_grad():
            size = size or self.l(torch.zeros(1, *IMAGE, dtype=next(self.l.parameters()).dtype)).numel()
        self.head = nn.Linear(size, 3)

    def honest(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(torch.flatten(self.act(self.l(x)), 1))
        return logits


class BatchNormNet(ConvNet):
    """With a batch norm `bn` that has seen data."""

    def __init__(self) -> None:
        super().__init__()
        self.bn = nn.BatchNorm2d(3)
        assert self.bn.running_mean is not None
        assert self.bn.running_var is not None
        self.bn.running_mean.uniform_(-1, 1)
        self.bn.running_var.uniform_(0.5, 2)

    def honest(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(torch.flatten(self.act(self.bn(self.l(x))), 1))
        return logits


def weight_of(layer: nn.Module) -> Tensor:
    """The weight as a tensor; `layer.weight` gives something else while torch.fx traces."""
    return dict(layer.named_parameters())["weight"]


def mlp(*layers: nn.Module) -> nn.Sequential:
    """4 → 6 → 3 with these layers in between, or a ReLU."""
    net = Net()
    return nn.Sequential(net.l, *(layers or (net.act,)), net.head)


def ignored(change: Callable[[Tensor], object]) -> Forward:
    """A forward that changes a value in place and never looks at what the change returns."""

    def run(self: Any, x: Tensor) -> Tensor:
        h = self.l(x)
        change(h)
        return self.head(h)

    run.__module__ = change.__module__
    return run


def applied(change: Callable[[Tensor], Tensor]) -> Forward:
    """A forward with a change of the hidden value."""

    def run(self: Any, x: Tensor) -> Tensor:
        return self.head(change(self.l(x)))

    run.__module__ = change.__module__
    return run
