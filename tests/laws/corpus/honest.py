"""Forwards as they are meant to be written: accepted, and sound."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from tests.laws.corpus.registry import ConvNet, DropoutNet, LeakyNet, Net, SquareNet, body, forward, mlp

forward("sequential", accepted=True)(lambda: mlp())
forward("module-with-a-forward", accepted=True)(lambda: Net())
forward("sequential-of-modules", shape=(4,), accepted=True)(lambda: nn.Sequential(nn.Identity(), Net()))
forward("a-layer-alone", accepted=True)(lambda: nn.Linear(4, 3))
forward("an-activation-last", accepted=True)(lambda: nn.Sequential(Net(), nn.Tanh()))
forward("one-logit", accepted=True)(lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1)))
forward("no-bias", accepted=True)(lambda: nn.Sequential(nn.Linear(4, 3, bias=False)))
forward("dropout-in-evaluation", accepted=True)(lambda: DropoutNet())
forward("a-double-model", accepted=True)(lambda: Net().double())
forward("frozen-weights", accepted=True)(lambda: Net().requires_grad_(False))
forward("an-in-place-relu-in-a-chain", accepted=True)(lambda: mlp(nn.ReLU(inplace=True)))
forward("a-slice-of-a-sequential", accepted=True)(lambda: nn.Sequential(*mlp(), nn.ReLU())[:3])
forward("a-traced-graph-module", accepted=True)(lambda: fx.symbolic_trace(Net()))
forward("a-long-chain", accepted=True)(
    lambda: nn.Sequential(
        *[layer for _ in range(5) for layer in (nn.Linear(4, 4), nn.Tanh())], nn.Linear(4, 3)
    )
)


@body("functional-style", accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(F.relu(self.l(x)))


@body("method-style", accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.l(x).relu().tanh().sigmoid())


@body("every-activation-function", accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    h = F.silu(F.elu(torch.tanh(self.l(x)), 1.5))
    return self.head(F.gelu(F.leaky_relu(h, 0.2)))


@body("a-residual-sum", SquareNet, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(x + self.act(self.l(x)))


@body("a-residual-sum-in-place", SquareNet, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    h = self.act(self.l(x))
    h += x
    return self.head(h)


@body("two-residual-blocks", SquareNet, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    h = torch.add(x, self.l(x).relu())
    return self.head(h.add(self.m(h).relu()))


@body("a-concatenation", SquareNet, state=lambda: {"last": nn.Linear(12, 3)}, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.last(torch.cat([x, self.l(x), F.relu(self.m(x))], dim=1))


@body(
    "dense-blocks", SquareNet, state=lambda: {"n": nn.Linear(8, 4), "last": nn.Linear(12, 3)}, accepted=True
)
def _(self: Any, x: Tensor) -> Tensor:
    values = [x]
    for layer in (self.l, self.n):
        values.append(F.relu(layer(torch.cat(values, 1))))
    return self.last(torch.cat(values, dim=-1))


@body("a-layer-used-twice", SquareNet, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.l(self.l(x).relu()))


@body("a-loop-over-one-layer", SquareNet, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    for _ in range(3):
        x = self.act(self.l(x))
    return self.head(x)


@body("a-value-added-to-itself", accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    return self.head(h + h)


@body("an-alias-of-a-value", SquareNet, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    skip = also = x
    return self.head(self.act(self.l(skip)) + also)


@body("two-hidden-layers", SquareNet, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.act(self.m(self.act(self.l(x)))))


@forward("two-layers-with-one-weight", accepted=True)
class _Tied(SquareNet):
    def __init__(self) -> None:
        super().__init__()
        self.m.weight = self.l.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.act(self.m(self.act(self.l(x)))))


@forward("inheritance-with-super", accepted=True)
class _Inherits(Net):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


@forward("a-module-list", accepted=True)
class _List(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)])

    def forward(self, x: Tensor) -> Tensor:
        return functools.reduce(lambda h, layer: layer(h), self.layers, x)


@forward("a-module-dictionary", accepted=True)
class _Dictionary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleDict({"first": nn.Linear(4, 6), "last": nn.Linear(6, 3)})

    def forward(self, x: Tensor) -> Tensor:
        return self.parts["last"](F.relu(self.parts["first"](x)))


@body(
    "a-partial-function",
    state=lambda: {"f": functools.partial(F.leaky_relu, negative_slope=3.0)},
    accepted=True,
)
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.f(self.l(x)))


@body("a-method-by-its-name", state=lambda: {"f": operator.methodcaller("relu")}, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.f(getattr(self, "l")(x)))  # noqa: B009


@body("a-setting-of-the-model", state=lambda: {"depth": 2}, base=SquareNet, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    for _ in range(self.depth):
        x = self.act(self.l(x))
    return self.head(x)


@body("an-unused-branch", SquareNet, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    self.m(x)
    return self.head(self.act(self.l(x)))


@body("a-branch-on-the-mode", accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.wrong(x) if self.training else self.honest(x)


@body("functional-dropout-by-mode", accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(F.dropout(F.relu(self.l(x)), 0.5, self.training))


@body("a-view-by-batch-size", ConvNet, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    h = F.relu(self.l(x))
    return self.head(h.view(h.size(0), -1))


@body("a-reshape-by-shape", ConvNet, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(F.relu(self.l(x)).reshape(x.shape[0], 108))


@body("a-permutation", ConvNet, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.l(x.permute(0, 1, 3, 2)).flatten(1))


@body("functional-pooling", ConvNet, state=lambda: {"last": nn.Linear(3, 3)}, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.last(F.avg_pool2d(F.max_pool2d(self.l(x), 2), 3).flatten(1))


@body("a-mean-over-pixels", ConvNet, state=lambda: {"last": nn.Linear(3, 3)}, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.last(F.relu6(self.l(x)).mean((2, 3)))


@body("a-mean-that-keeps-dimensions", ConvNet, state=lambda: {"last": nn.Linear(3, 3)}, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.last(torch.mean(F.hardswish(self.l(x)), dim=[-1, -2], keepdim=True).flatten(1))


@body("functional-global-pooling", ConvNet, state=lambda: {"last": nn.Linear(3, 3)}, accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.last(torch.flatten(F.adaptive_avg_pool2d(self.l(x), (1, 1)), 1))


@body("more-activation-functions", accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    h = F.softplus(F.mish(self.l(x)), 2.0, 30.0)
    return self.head(F.hardtanh(h, -0.3, 4.1))


@body("a-softmax-last", accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return F.softmax(self.honest(x), dim=1)


@body("a-log-softmax-last", accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.honest(x).log_softmax(-1)


@body(
    "layers-in-place-beside-a-shortcut",
    SquareNet,
    state=lambda: {"act": nn.ReLU(inplace=True)},
    accepted=True,
)
def _(self: Any, x: Tensor) -> Tensor:
    h = self.act(self.l(x))
    y = self.act(self.m(h))
    y += h
    return self.head(self.act(y))


@body("a-shortcut-overwritten-in-place", SquareNet, state=lambda: {"act": nn.LeakyReLU(-20.0, inplace=True)})
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    return self.head(self.m(self.act(h)) + h)


@body("a-view-overwritten-in-place", SquareNet, state=lambda: {"act": nn.LeakyReLU(-20.0, inplace=True)})
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    self.act(h.flatten(1))
    return self.head(h)


@body("a-sum-with-a-view-of-itself", ConvNet)
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    h += h.permute(0, 1, 3, 2)
    return self.head(h.flatten(1))


@body("a-mean-over-the-batch", ConvNet, accepted=False)
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    return self.head((h + h.mean(0, keepdim=True)).flatten(1))


@body("a-softmax-over-the-batch", accepted=False)
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(torch.softmax(self.l(x), dim=-2))


@forward("an-expanding-slope", accepted=True)
class _Expanding(LeakyNet):
    def __init__(self) -> None:
        super().__init__()
        self.act = nn.LeakyReLU(-20.0)


@forward("zero-weights", accepted=True)
class _Zero(Net):
    def __init__(self) -> None:
        super().__init__()
        nn.init.zeros_(self.l.weight)


@forward("huge-weights", accepted=True)
class _Huge(Net):
    def __init__(self) -> None:
        super().__init__()
        self.l.weight.data *= 1e12


@forward("tiny-weights", accepted=True)
class _Tiny(Net):
    def __init__(self) -> None:
        super().__init__()
        self.l.weight.data *= 1e-12


@forward("two-equal-rows", accepted=True)
class _EqualRows(Net):
    def __init__(self) -> None:
        super().__init__()
        self.head.weight.data[1] = self.head.weight.data[0]
        self.head.bias.data[1] = self.head.bias.data[0] + math.sqrt(0.5)


@forward("a-transposed-weight", accepted=True)
class _Transposed(Net):
    def __init__(self) -> None:
        super().__init__()
        self.l.weight = nn.Parameter(torch.randn(4, 6).T)


@forward("a-weight-that-repeats-a-row", accepted=True)
class _Expanded(Net):
    def __init__(self) -> None:
        super().__init__()
        self.l.weight = nn.Parameter(torch.randn(1, 4).expand(6, 4))
