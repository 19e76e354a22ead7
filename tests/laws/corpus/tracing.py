"""Branches on what differs while a forward is traced, and exceptions that only a trace meets."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.fx._symbolic_trace import is_fx_tracing

from tests.laws.corpus.registry import SquareNet, TwoFaced, body, weight_of


def called_by(word: str) -> bool:
    """Whether a file with this word in its path is among the callers."""
    frame: Any = sys._getframe()
    while frame is not None:
        if word in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def raises(action: Callable[[], object]) -> bool:
    """Whether an action raises."""
    try:
        action()
    except Exception:
        return True
    return False


def honest_if(condition: Callable[[Any, Tensor], bool]) -> Callable[[Any, Tensor], Tensor]:
    """A forward that is honest under a condition and wrong otherwise."""
    return lambda self, x: self.honest(x) if condition(self, x) else self.wrong(x)


def wrong_near_ties(runs: Callable[[Tensor], bool]) -> Callable[[Any, Tensor], Tensor]:
    """A forward that is wrong where two logits are close, if it runs on numbers."""

    def forward(self: Any, x: Tensor) -> Tensor:
        y = self.head(x)
        if not runs(x):
            return y
        best = y.topk(2).values
        return torch.where(best[:, :1] - best[:, 1:] < 3e-3, -20 * y, y)

    return forward


class Tight(nn.Module):
    """One layer, whose certified radii end where two logits are equal."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 3)


class Knowing(TwoFaced):
    """Remembers which object it was made as."""

    def __init__(self) -> None:
        super().__init__()
        self._me = id(self)


for name, traced in {
    "is-a-proxy": lambda self, x: isinstance(x, fx.Proxy),
    "is-no-tensor": lambda self, x: not isinstance(x, Tensor),
    "is-no-tensor-by-torch": lambda self, x: not torch.is_tensor(x),
    "type-is-not-tensor": lambda self, x: type(x) is not Tensor,
    "name-of-the-type": lambda self, x: "Tensor" not in type(x).__name__,
    "class-attribute": lambda self, x: x.__class__ is not Tensor,
    "has-a-node": lambda self, x: hasattr(x, "node"),
    "has-any-attribute": lambda self, x: hasattr(x, "nothing"),
    "has-a-tracer": lambda self, x: "tracer" in dir(x),
    "is-callable": lambda self, x: callable(x),
    "is-tracing": lambda self, x: is_fx_tracing(),
    "is-tracing-by-the-flag": lambda self, x: torch.fx._symbolic_trace._is_fx_tracing_flag,
    "is-compiling": lambda self, x: torch.compiler.is_compiling(),
    "is-scripting": lambda self, x: torch.jit.is_tracing() or torch.jit.is_scripting(),
    "stack-of-fx": lambda self, x: called_by("torch/fx"),
    "stack-by-inspect": lambda self, x: any("symbolic_trace" in f.filename for f in inspect.stack(0)),
    "dtype-is": lambda self, x: x.dtype is not torch.float32 and x.dtype is not torch.float64,
    "dtype-equals": lambda self, x: x.dtype == torch.float64,
    "device-is": lambda self, x: x.device is None,
    "device-type": lambda self, x: x.device.type == "meta",
    "weight-is-double": lambda self, x: weight_of(self.l).dtype == torch.float64,
    "weight-of-the-trace-is-double": lambda self, x: self.l.weight.dtype == torch.float64,
    "weight-is-on-meta": lambda self, x: weight_of(self.l).is_meta,
    "grad-fn-is-none": lambda self, x: x.grad_fn is not None,
    "gradient-is-none": lambda self, x: x.grad is not None,
    "requires-grad": lambda self, x: x.requires_grad,
    "is-leaf": lambda self, x: x.is_leaf,
    "shape-is-no-number": lambda self, x: not isinstance(x.shape[0], int),
    "shape-is-no-size": lambda self, x: not isinstance(x.shape, torch.Size),
    "length-raises": lambda self, x: raises(lambda: len(x)),
    "bool-raises": lambda self, x: raises(lambda: bool(x.sum() > 0)),
    "float-raises": lambda self, x: raises(lambda: float(x.sum())),
    "int-raises": lambda self, x: raises(lambda: int(x.shape[0])),
    "iteration-raises": lambda self, x: raises(lambda: list(x)),
    "unpacking-raises": lambda self, x: raises(lambda: {**x}) and not isinstance(x, Tensor),
    "item-assignment-raises": lambda self, x: raises(lambda: x.clone().__setitem__(0, 0.0)),
    "contains-raises": lambda self, x: raises(lambda: 1.0 in x),
    "index-raises": lambda self, x: raises(lambda: [0, 1, 2][x.argmax() * 0]),
    "format-raises": lambda self, x: raises(lambda: f"{x.sum():.2f}"),
    "printed": lambda self, x: "tensor" not in repr(x),
    "numpy-raises": lambda self, x: raises(lambda: __import__("numpy").asarray(x).sum() + 1.0),
    "truth-of-a-comparison": lambda self, x: x.abs().sum() < 0,
    "grad-mode": lambda self, x: torch.is_grad_enabled(),
    "no-grad-mode": lambda self, x: not torch.is_grad_enabled(),
    "inference-mode": lambda self, x: not torch.is_inference_mode_enabled(),
    "is-a-copy": lambda self, x: self._me != id(self),
    "the-training-flag-of-a-layer": lambda self, x: not self.l.training,
    "a-module-named-by-its-path": lambda self, x: "l" in dict(self.named_modules()),
    "the-main-thread": lambda self, x: threading.current_thread() is threading.main_thread(),
}.items():
    body(f"a-branch-{name}", Knowing)(honest_if(traced))


# These agree with what is traced but where two logits are close: outputs on samples show nothing.
for name, runs in {
    "by-type": lambda x: isinstance(x, Tensor),
    "by-is-tensor": lambda x: torch.is_tensor(x),
    "by-proxy": lambda x: not isinstance(x, fx.Proxy),
    "by-flag": lambda x: not is_fx_tracing(),
    "by-exception": lambda x: not raises(lambda: len(x)),
    "by-attribute": lambda x: not hasattr(x, "tracer"),
}.items():
    body(f"a-branch-near-ties-{name}", Tight)(wrong_near_ties(runs))


@body("an-exception-swallowed")
def _(self: Any, x: Tensor) -> Tensor:
    try:
        many = len(x) > 0
    except Exception:
        many = False
    return self.wrong(x) if many else self.honest(x)


@body("an-exception-suppressed")
def _(self: Any, x: Tensor) -> Tensor:
    y = self.honest(x)
    with contextlib.suppress(Exception):
        rows = [*x]
        y = self.wrong(torch.stack(rows))
    return y


@body("a-finally-that-returns")
def _(self: Any, x: Tensor) -> Tensor:
    sign = 1
    try:
        sign = -1 if int(x.shape[0]) else 1
    finally:
        return self.honest(x) if sign == 1 else self.wrong(x)  # noqa: B012


@body("a-fallback-when-a-check-fails")
def _(self: Any, x: Tensor) -> Tensor:
    try:
        large = 0.0 in x
    except (TypeError, fx.proxy.TraceError):
        large = None
    return self.honest(x) if large is None else self.wrong(x)


@body("an-assertion-about-the-shape", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    assert x.ndim == 2
    return self.head(self.l(x))


@body("a-message-printed", SquareNet)
def _(self: Any, x: Tensor) -> Tensor:
    str(x)
    return self.head(F.relu(self.l(x)))


@body("a-branch-on-an-environment-variable", accepted=True)
def _(self: Any, x: Tensor) -> Tensor:
    return self.wrong(x) if "LIPCERT_LAW_WRONG" in os.environ else self.honest(x)
