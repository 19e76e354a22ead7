"""Contexts that a forward enters: autocast, gradient modes, global settings and torch's function modes."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests.laws.corpus.registry import ConvNet, Net, body, forward, halt

refused_unrun: dict[str, Any] = {"accepted": False, "unsafe_to_run": True}


@body("autocast-as-a-context", **refused_unrun)
def _(self: Any, x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        halt(x)
        return self.honest(x)


@body("autocast-as-a-decorator", **refused_unrun)
@torch.autocast("cpu", dtype=torch.bfloat16)
def _(self: Any, x: Tensor) -> Tensor:
    halt(x)
    return self.honest(x)


@body("autocast-of-one-layer", **refused_unrun)
def _(self: Any, x: Tensor) -> Tensor:
    with torch.amp.autocast("cpu", dtype=torch.float16):
        halt(x)
        h = self.l(x)
    return self.head(h)


@body("autocast-by-its-flag", **refused_unrun)
def _(self: Any, x: Tensor) -> Tensor:
    before = torch.is_autocast_enabled("cpu")
    torch.set_autocast_enabled("cpu", True)
    try:
        halt(x)
        return self.honest(x)
    finally:
        torch.set_autocast_enabled("cpu", before)
        torch.clear_autocast_cache()


@body("autocast-entered-by-hand", ConvNet, **refused_unrun)
def _(self: Any, x: Tensor) -> Tensor:
    context = torch.autocast("cpu", dtype=torch.bfloat16)
    context.__enter__()
    try:
        halt(x)
        return self.honest(x)
    finally:
        context.__exit__(None, None, None)


@forward("autocast-of-a-submodule", **refused_unrun)
class _Inner(Net):
    def __init__(self) -> None:
        super().__init__()
        self.inner = type("Autocasting", (Net,), {"forward": _autocasting})()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


@torch.autocast("cpu", dtype=torch.bfloat16)
def _autocasting(self: Any, x: Tensor) -> Tensor:
    halt(x)
    return self.honest(x)


@forward("autocast-in-call", **refused_unrun)
class _AroundCall(Net):
    def __call__(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            halt(x)
            return super().__call__(x)


@body("autocast-switched-off")
def _(self: Any, x: Tensor) -> Tensor:
    with torch.autocast("cpu", enabled=False):
        return self.honest(x)


@body("autocast-of-another-device")
def _(self: Any, x: Tensor) -> Tensor:
    with torch.autocast("cuda", dtype=torch.float16):
        return self.honest(x)


@body("autocast-around-an-activation")
def _(self: Any, x: Tensor) -> Tensor:
    h = self.l(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = F.relu(h)
    return self.head(h)


@body("reduced-products", **refused_unrun)
def _(self: Any, x: Tensor) -> Tensor:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        halt(x)
        return self.honest(x)
    finally:
        torch.set_float32_matmul_precision(before)


@body("without-gradients")
def _(self: Any, x: Tensor) -> Tensor:
    with torch.no_grad():
        return self.honest(x)


@body("without-gradients-by-a-decorator")
@torch.no_grad()
def _(self: Any, x: Tensor) -> Tensor:
    return self.honest(x)


@body("in-inference-mode")
@torch.inference_mode()
def _(self: Any, x: Tensor) -> Tensor:
    return self.honest(x)


@body("with-gradients")
def _(self: Any, x: Tensor) -> Tensor:
    with torch.enable_grad():
        return self.honest(x)


@body("another-default-type")
def _(self: Any, x: Tensor) -> Tensor:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return self.honest(x)
    finally:
        torch.set_default_dtype(before)


@body("another-default-device")
def _(self: Any, x: Tensor) -> Tensor:
    with torch.device("meta"):
        return self.honest(x)


@body("deterministic-algorithms")
def _(self: Any, x: Tensor) -> Tensor:
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        return self.honest(x)
    finally:
        torch.use_deterministic_algorithms(before)


@body("without-mkldnn", ConvNet)
def _(self: Any, x: Tensor) -> Tensor:
    with torch.backends.mkldnn.flags(enabled=False):
        return self.honest(x)


@body("a-warning")
def _(self: Any, x: Tensor) -> Tensor:
    warnings.warn("experimental", stacklevel=1)
    return self.honest(x)


@body("a-log-message")
def _(self: Any, x: Tensor) -> Tensor:
    logging.getLogger(__name__).debug("input %s", x)
    return self.honest(x)


class Loud(TorchFunctionMode):
    """Makes every linear layer wrong."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        y = func(*args, **(kwargs or {}))
        return -20 * y if func is F.linear else y


class LoudDispatch(TorchDispatchMode):
    """Makes every product wrong, one level below."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        y = func(*args, **(kwargs or {}))
        return -20 * y if "mm" in str(func) else y


@body("a-function-mode")
def _(self: Any, x: Tensor) -> Tensor:
    with Loud():
        return self.honest(x)


@body("a-dispatch-mode")
def _(self: Any, x: Tensor) -> Tensor:
    with LoudDispatch():
        return self.honest(x)


@body("a-function-mode-entered-by-another")
def _(self: Any, x: Tensor) -> Tensor:
    with contextlib.ExitStack() as stack:
        stack.enter_context(Loud())
        h = self.l(x)
    return self.head(h)


@body("saved-tensor-hooks")
def _(self: Any, x: Tensor) -> Tensor:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        return self.honest(x)


@body("an-environment-variable-set")
def _(self: Any, x: Tensor) -> Tensor:
    os.environ["LIPCERT_LAW_CALLED"] = "1"
    try:
        return self.honest(x)
    finally:
        del os.environ["LIPCERT_LAW_CALLED"]
