"""Ways to call: other `__call__`s, nested calls, functions held by the model, properties and lookups."""

from __future__ import annotations

import asyncio
import copy
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.utils.checkpoint import checkpoint

from tests.laws.corpus.registry import Net, SquareNet, TwoFaced, body, forward, mlp


@forward("another-call")
class _Loud(Net):
    def __call__(self, x: Tensor) -> Tensor:
        return -20 * super().__call__(x)


@forward("another-call-that-scales-the-input")
class _Scaled(Net):
    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x.flip(-1) * -20)


@forward("another-call-without-a-forward")
class _OnlyCall(Net):
    def __call__(self, x: Tensor) -> Tensor:
        return self.wrong(x)


@forward("another-call-by-inheritance")
class _Grandchild(_Loud):
    def forward(self, x: Tensor) -> Tensor:
        return self.honest(x)


class LoudLayer(nn.Module):
    """With a call of its own, and nothing but an identity as its forward."""

    def forward(self, x: Tensor) -> Tensor:
        return x

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x) * -20 if isinstance(x, Tensor) else super().__call__(x)


forward("another-call-of-a-submodule")(lambda: mlp(LoudLayer(), nn.ReLU()))


class CallImpl(Net):
    """With another of the functions that torch calls on the way."""

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return -20 * super()._call_impl(*args, **kwargs)


forward("another-call-impl")(CallImpl)


@forward("another-wrapped-call-impl")
class _Wrapped(Net):
    def _wrapped_call_impl(self, x: Tensor) -> Tensor:
        return -20 * super()._wrapped_call_impl(x)


@forward("a-metaclass-that-wraps-forward")
class _Meta(Net, metaclass=type("Meta", (type,), {"__call__": lambda cls, *a: type.__call__(cls, *a)})):
    def forward(self, x: Tensor) -> Tensor:
        return self.honest(x)


@forward("an-instance-with-its-own-forward")
def _() -> nn.Module:
    net = Net()
    net.forward = net.wrong  # type: ignore[method-assign]
    return net


@forward("a-layer-with-its-own-forward")
def _() -> nn.Module:
    net = Net()
    net.l.forward = lambda x: F.linear(x, -20 * net.l.weight)  # type: ignore[method-assign, assignment]
    return net


@forward("an-instance-that-hides-a-method")
def _() -> nn.Module:
    net = TwoFaced()
    net.honest = net.wrong  # type: ignore[method-assign]
    return net


@forward("an-instance-with-its-own-call")
def _() -> nn.Module:
    net = Net()
    net.__call__ = net.wrong  # python looks for it in the class, so this changes nothing
    return net


@forward("an-instance-with-its-own-call-impl")
def _() -> nn.Module:
    net = Net()
    net._call_impl = net.wrong  # type: ignore[method-assign]
    return net


@forward("a-layer-with-its-own-call-impl")
def _() -> nn.Module:
    net = Net()
    layer = net.l
    layer._call_impl = lambda x: F.linear(x, -20 * layer.weight)  # type: ignore[method-assign]
    return net


@forward("a-layer-with-its-own-compiled-call")
def _() -> nn.Module:
    net = Net()
    layer = net.l
    layer._compiled_call_impl = lambda x: F.linear(x, -20 * layer.weight)  # what torch.compile sets
    return net


@body("a-call-by-forward")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head.forward(self.act.forward(self.l.forward(x)))


@body("a-call-by-the-class")
def _(self: Any, x: Tensor) -> Tensor:
    return nn.Module.__call__(self.head, nn.Module.__call__(self.l, x))


@body("a-call-with-keywords")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(input=self.act(input=self.l(input=x)))


@body("scaled-weights-in-a-function")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(F.linear(x, self.l.weight * -20))


@body("its-own-weights-in-a-function")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(F.linear(x, self.l.weight, self.l.bias))


@body("a-product-with-a-weight")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(torch.einsum("bi,oi->bo", x, self.l.weight) + self.l.bias)


@body("a-parameter-added")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.l(x) + self.l.bias)


@body("a-constant-tensor-added")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.l(x) + torch.ones(6))


@body("a-checkpoint")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(checkpoint(self.l, x, use_reentrant=False))


@body("a-reentrant-checkpoint")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(checkpoint(self.l, x, use_reentrant=True))


@body("a-mapped-layer")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(torch.vmap(self.l)(x))


@body("a-layer-on-another-thread")
def _(self: Any, x: Tensor) -> Tensor:
    with ThreadPoolExecutor(1) as pool:
        return self.head(pool.submit(self.l, x).result())


@body("a-coroutine")
def _(self: Any, x: Tensor) -> Tensor:
    async def run() -> Tensor:
        return self.honest(x)

    return asyncio.run(run())


@body("a-copy-of-a-layer")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(copy.deepcopy(self.l)(x))


@body("a-layer-made-in-forward")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(nn.LeakyReLU(-20.0)(self.l(x)))


@body("a-layer-of-another-model", state=lambda: {"_other": [Net()]})
def _(self: Any, x: Tensor) -> Tensor:
    return self._other[0].wrong(x)


@body("a-layer-in-a-plain-list", state=lambda: {"plain": [nn.LeakyReLU(-20.0)]})
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.plain[0](self.l(x)))


@body("a-weight-in-a-plain-dictionary", state=lambda: {"plain": {"w": torch.randn(6, 4)}})
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(F.linear(x, self.plain["w"]))


@body("a-parameter-list", state=lambda: {"ws": nn.ParameterList([torch.randn(6, 4)])})
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(F.linear(x, self.ws[0]))


def steepened(function: Callable[[Any, Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
    @functools.wraps(function)
    def run(self: Any, x: Tensor) -> Tensor:
        return function(self, -20 * x if type(x) is Tensor else x)

    return run


@body("a-decorator-that-scales-tensors")
@steepened
def _(self: Any, x: Tensor) -> Tensor:
    return self.honest(x)


def twice(function: Callable[[Any, Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
    return functools.wraps(function)(lambda self, x: function(self, self.l(x)))


@body("a-decorator-that-is-honest", SquareNet)
@twice
def _(self: Any, x: Tensor) -> Tensor:
    return self.honest(x)


@forward("a-decorator-whose-wrapped-function-differs")
class _Unwrapped(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.wrong(x)

    forward.__wrapped__ = Net.forward  # type: ignore[attr-defined]


@forward("a-lambda-held-by-the-model")
class _Lambda(Net):
    def __init__(self) -> None:
        super().__init__()
        self.run = lambda x: self.honest(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.run(x)


@forward("a-bound-method-held-by-the-model")
class _Bound(Net):
    def __init__(self) -> None:
        super().__init__()
        self.run = self.honest

    def forward(self, x: Tensor) -> Tensor:
        return self.run(x)


@forward("a-forward-assigned-to-the-class")
class _Assigned(Net):
    forward = Net.wrong


@forward("a-forward-from-another-class")
class _Borrowed(SquareNet):
    forward = lambda self, x: Net.honest(self, x)  # noqa: E731


@forward("a-static-forward")
class _Static(Net):
    @staticmethod
    def forward(x: Tensor) -> Tensor:  # type: ignore[override]
        return torch.relu(x)


@forward("a-layer-by-getattr")
class _GetAttr(Net):
    def __getattr__(self, name: str) -> Any:
        return super().__getattr__("act") if name == "activation" else super().__getattr__(name)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.activation(self.l(x)))


@forward("a-property-with-a-turn")
class _Property(SquareNet):
    def __init__(self) -> None:
        super().__init__()
        self.m.weight.data.mul_(-20)
        self._turn = 0

    @property
    def layer(self) -> nn.Module:
        self._turn += 1
        return self.l if self._turn % 2 else self.m

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x))


@body("a-list-of-experts-by-turn", state=lambda: {"experts": nn.ModuleList([Net(), Net()]), "_turn": [0]})
def _(self: Any, x: Tensor) -> Tensor:
    self._turn[0] += 1
    return self.experts[self._turn[0] % 2](x)


@body("a-generator-function", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    def values() -> Any:
        h = x
        for layer in (self.l, self.m):
            h = layer(h)
            yield h

    return self.head(list(values())[-1])


@body("recursion", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    def run(h: Tensor, depth: int) -> Tensor:
        return h if depth == 0 else run(self.act(self.l(h)), depth - 1)

    return self.head(run(x, 3))


@fx.wrap
def wrapped_for_fx(h: Tensor) -> Tensor:
    return -20 * h


@body("a-function-wrapped-for-fx")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(wrapped_for_fx(self.l(x)))


class Steep(torch.autograd.Function):
    """A function with a derivative of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return -20 * x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return torch.zeros_like(grads[0])


@body("an-autograd-function")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(Steep.apply(self.l(x)))


@body("a-call-with-no-input-at-all")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.l(torch.ones(3, 4)))
