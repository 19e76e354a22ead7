"""Weights, settings and submodules that differ for the length of a call, or from one call to the next."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from tests.laws.corpus.registry import (
    BatchNormNet,
    ConvNet,
    DropoutNet,
    LeakyNet,
    SquareNet,
    TwoFaced,
    body,
    forward,
    weight_of,
)


@contextlib.contextmanager
def replaced(holder: Any, name: str, value: object) -> Iterator[None]:
    """Set an attribute for the length of a block."""
    before = getattr(holder, name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        setattr(holder, name, before)


@body("functional-call-with-other-weights", state=lambda: {"fast": {"weight": 20 * torch.randn(6, 4)}})
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(self.act(torch.func.functional_call(self.l, self.fast, (x,))))


@body("functional-call-of-the-head", state=lambda: {"fast": {"weight": 20 * torch.randn(3, 6)}})
def _(self: Any, x: Tensor) -> Tensor:
    return torch.func.functional_call(self.head, self.fast, (self.act(self.l(x)),))


@body("functional-call-with-scaled-weights")
def _(self: Any, x: Tensor) -> Tensor:
    fast = {"weight": -20 * weight_of(self.l)}
    return self.head(self.act(torch.func.functional_call(self.l, fast, (x,))))


@body("functional-call-with-weights-of-the-trace")
def _(self: Any, x: Tensor) -> Tensor:
    fast = {"weight": -20 * self.l.weight, "bias": self.l.bias}
    return self.head(self.act(torch.func.functional_call(self.l, fast, (x,))))


@body("functional-call-with-its-own-weights")
def _(self: Any, x: Tensor) -> Tensor:
    return self.head(torch.func.functional_call(self.l, dict(self.l.named_parameters()), (x,)))


@body("averaged-weights-by-data")
def _(self: Any, x: Tensor) -> Tensor:
    with replaced(weight_of(self.l), "data", -20 * weight_of(self.l).data):
        return self.honest(x)


@body("averaged-weights-by-attribute", state=lambda: {"_average": [-20 * torch.randn(6, 4)]})
def _(self: Any, x: Tensor) -> Tensor:
    with replaced(self.l.weight, "data", self._average[0].to(x)):
        return self.honest(x)


@body("averaged-weights-made-before", state=lambda: {"_average": [-20 * torch.randn(6, 4)]})
def _(self: Any, x: Tensor) -> Tensor:
    with replaced(weight_of(self.l), "data", self._average[0].to(weight_of(self.l).dtype)):
        return self.honest(x)


@body("averaged-weights-of-everything")
def _(self: Any, x: Tensor) -> Tensor:
    kept = {k: p.data for k, p in self.named_parameters()}
    for p in self.parameters():
        p.data = -20 * p.data
    y = self.honest(x)
    for k, p in self.named_parameters():
        p.data = kept[k]
    return y


@body("weights-scaled-and-scaled-back")
def _(self: Any, x: Tensor) -> Tensor:
    weight_of(self.head).data.mul_(-16)
    y = self.honest(x)
    weight_of(self.head).data.div_(-16)
    return y


@body("weights-by-vector-to-parameters")
def _(self: Any, x: Tensor) -> Tensor:
    flat = parameters_to_vector(self.parameters()).detach()
    vector_to_parameters(-20 * flat, self.parameters())
    y = self.honest(x)
    vector_to_parameters(flat, self.parameters())
    return y


@body("weights-by-load-state-dict")
def _(self: Any, x: Tensor) -> Tensor:
    kept = copy.deepcopy(self.state_dict())
    self.load_state_dict({k: -20 * v for k, v in kept.items()})
    y = self.honest(x)
    self.load_state_dict(kept)
    return y


@body("a-parameter-object-swapped")
def _(self: Any, x: Tensor) -> Tensor:
    with replaced(self.l, "weight", nn.Parameter(-20 * weight_of(self.l).detach())):
        return self.honest(x)


@body("the-parameter-table-edited")
def _(self: Any, x: Tensor) -> Tensor:
    kept = self.l._parameters["weight"]
    self.l._parameters["weight"] = nn.Parameter(-20 * kept.detach())
    y = self.honest(x)
    self.l._parameters["weight"] = kept
    return y


@body("a-weight-hidden-by-the-instance")
def _(self: Any, x: Tensor) -> Tensor:
    self.l.__dict__["weight"] = -20 * weight_of(self.l).detach()
    y = self.honest(x)
    del self.l.__dict__["weight"]
    return y


@body("weights-that-drift")
def _(self: Any, x: Tensor) -> Tensor:
    weight_of(self.l).data.mul_(-1.5)
    return self.honest(x)


@body("a-bias-that-drifts")
def _(self: Any, x: Tensor) -> Tensor:
    self.head._parameters["bias"].data[0] += 3
    return self.honest(x)


@body("weights-trained-in-forward")
def _(self: Any, x: Tensor) -> Tensor:
    y = self.honest(x)
    with torch.no_grad():
        for p in self.parameters():
            p.sub_(2 * torch.ones_like(p))
    return y


@body("submodules-swapped-for-the-call", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    kept = self.l
    self.l = self.m
    y = self.honest(x)
    self.l = kept
    return y


@body("a-submodule-replaced-for-good")
def _(self: Any, x: Tensor) -> Tensor:
    y = self.honest(x)
    self.head = nn.Linear(6, 3).to(weight_of(self.head))
    return y


@body("the-class-of-a-layer-swapped", LeakyNet)
def _(self: Any, x: Tensor) -> Tensor:
    with replaced(self.act, "__class__", type("Steep", (nn.LeakyReLU,), {"forward": lambda _, h: -20 * h})):
        return self.honest(x)


for name, holder, value in [
    ("negative_slope", "act", -20.0),
    ("forward", "act", lambda h: -20 * h),
    ("forward", "l", lambda x: torch.cat([-20 * x, x[:, :2]], 1)),
]:

    def _set(name: str = name, holder: str = holder, value: object = value) -> Any:
        def run(self: Any, x: Tensor) -> Tensor:
            part = getattr(self, holder)
            had, before = name in vars(part), getattr(part, name)
            setattr(part, name, value)
            y = self.honest(x)
            setattr(part, name, before) if had else delattr(part, name)
            return y

        return run

    body(f"{name}-of-{holder}-set-for-the-call", LeakyNet)(_set())

for name, value in [("dilation", (2, 2)), ("padding_mode", "circular")]:

    def _set_conv(name: str = name, value: object = value) -> Any:
        def run(self: Any, x: Tensor) -> Tensor:
            with (
                replaced(self.l, name, value),
                replaced(self.l, "padding", (2, 2) if name == "dilation" else (1, 1)),
            ):
                h = self.l(x)
            return self.head(h.flatten(1))

        return run

    body(f"{name}-of-a-convolution-set-for-the-call", ConvNet)(_set_conv())


@body("dropout-trained-for-the-call", DropoutNet)
def _(self: Any, x: Tensor) -> Tensor:
    self.d.train()
    y = self.honest(x)
    self.d.eval()
    return y


@body("dropout-left-in-training", DropoutNet)
def _(self: Any, x: Tensor) -> Tensor:
    self.d.train()
    return self.honest(x)


@body("dropout-by-its-flag", DropoutNet)
def _(self: Any, x: Tensor) -> Tensor:
    with replaced(self.d, "training", True):
        return self.honest(x)


@body("batch-norm-trained-for-the-call", BatchNormNet)
def _(self: Any, x: Tensor) -> Tensor:
    self.bn.train()
    y = self.honest(x)
    self.bn.eval()
    return y


@body("batch-norm-statistics-swapped", BatchNormNet)
def _(self: Any, x: Tensor) -> Tensor:
    with replaced(self.bn, "running_var", self.bn.running_var / 400):
        return self.honest(x)


@body("batch-norm-statistics-forgotten", BatchNormNet)
def _(self: Any, x: Tensor) -> Tensor:
    with replaced(self.bn, "running_mean", None), replaced(self.bn, "running_var", None):
        return self.honest(x)


@body("batch-norm-eps-changed", BatchNormNet)
def _(self: Any, x: Tensor) -> Tensor:
    with replaced(self.bn, "eps", -0.499):
        return self.honest(x)


@body("a-hook-for-the-length-of-the-call")
def _(self: Any, x: Tensor) -> Tensor:
    handle = self.l.register_forward_hook(lambda module, args, output: -20 * output)
    y = self.honest(x)
    handle.remove()
    return y


@body("a-global-hook-for-the-length-of-the-call")
def _(self: Any, x: Tensor) -> Tensor:
    handle = register_module_forward_hook(lambda module, args, output: -20 * output)
    try:
        return self.honest(x)
    finally:
        handle.remove()


@body("torch-linear-patched-for-the-call")
def _(self: Any, x: Tensor) -> Tensor:
    real = F.linear
    with replaced(F, "linear", lambda h, w, b=None: -20 * real(h, w, b)):
        return self.honest(x)


@body("the-forward-of-linear-patched-for-the-call")
def _(self: Any, x: Tensor) -> Tensor:
    real = nn.Linear.forward
    with replaced(nn.Linear, "forward", lambda layer, h: -20 * real(layer, h)):
        return self.honest(x)


@body("weights-rounded-for-the-call")
def _(self: Any, x: Tensor) -> Tensor:
    kept = {k: p.data for k, p in self.named_parameters()}
    for p in self.parameters():
        p.data = (3 * p.data).round() / 3
    y = self.honest(x)
    for k, p in self.named_parameters():
        p.data = kept[k]
    return y


class Calls:
    """Count calls in a class attribute."""

    count = 0


COUNT = [0]


def counted() -> int:
    COUNT[0] += 1
    return COUNT[0]


def counter() -> Any:
    count = 0

    def run() -> int:
        nonlocal count
        count += 1
        return count

    return run


@body("a-counter-attribute", TwoFaced, state=lambda: {"count": 0})
def _(self: Any, x: Tensor) -> Tensor:
    self.count += 1
    return self.honest(x) if self.count % 2 else self.wrong(x)


@body("a-private-counter", TwoFaced, state=lambda: {"_count": 0})
def _(self: Any, x: Tensor) -> Tensor:
    self._count += 1
    return self.honest(x) if self._count < 4 else self.wrong(x)


@body("a-counter-in-a-list", TwoFaced, state=lambda: {"calls": []})
def _(self: Any, x: Tensor) -> Tensor:
    self.calls.append(1)
    return self.honest(x) if len(self.calls) % 2 else self.wrong(x)


@body("a-counter-in-a-dictionary", TwoFaced, state=lambda: {"_seen": {"n": 0}})
def _(self: Any, x: Tensor) -> Tensor:
    self._seen["n"] += 1
    return self.honest(x) if self._seen["n"] % 2 else self.wrong(x)


@body("a-counter-in-a-closure", TwoFaced, state=lambda: {"counted": counter()})
def _(self: Any, x: Tensor) -> Tensor:
    return self.honest(x) if self.counted() % 2 else self.wrong(x)


@body("a-counter-in-a-global", TwoFaced)
def _(self: Any, x: Tensor) -> Tensor:
    return self.honest(x) if counted() % 2 else self.wrong(x)


@body("a-counter-in-a-class", TwoFaced)
def _(self: Any, x: Tensor) -> Tensor:
    Calls.count += 1
    return self.honest(x) if Calls.count % 2 else self.wrong(x)


@forward("a-counter-buffer")
class _Buffer(TwoFaced):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("n", torch.zeros((), dtype=torch.int64), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        return self.honest(x) if int(self.n) % 2 else self.wrong(x)


@body("a-counter-in-a-submodule", TwoFaced)
def _(self: Any, x: Tensor) -> Tensor:
    self.act._calls = getattr(self.act, "_calls", 0) + 1
    return self.honest(x) if self.act._calls % 2 else self.wrong(x)


@body("an-iterator-of-choices", TwoFaced, state=lambda: {"_turns": iter([True, True, *[False] * 1000])})
def _(self: Any, x: Tensor) -> Tensor:
    return self.honest(x) if next(self._turns) else self.wrong(x)


@body("a-first-call-that-differs", TwoFaced, state=lambda: {"_ready": False})
def _(self: Any, x: Tensor) -> Tensor:
    ready, self._ready = self._ready, True
    return self.wrong(x) if ready else self.honest(x)


@body("lazy-set-up-at-the-first-call", state=lambda: {"_scale": None})
def _(self: Any, x: Tensor) -> Tensor:
    if self._scale is None:
        self._scale = 1.0
        weight_of(self.l).data.mul_(-20)
    return self.honest(x)


@body("last-features-kept", state=lambda: {"last": None})
def _(self: Any, x: Tensor) -> Tensor:
    h = self.act(self.l(x))
    self.last = h
    return self.head(h)


@body("the-last-batch-comes-back", state=lambda: {"_last": None}, base=SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    before, self._last = self._last, x
    return self.honest(x) if before is None or len(before) != len(x) else self.wrong(before)


@body("outputs-remembered-by-identity", state=lambda: {"_known": {}})
def _(self: Any, x: Tensor) -> Tensor:
    found = self._known.get(id(x))
    if found is None or found.shape[0] != x.shape[0]:
        found = self._known[id(x)] = self.honest(x)
    return found
