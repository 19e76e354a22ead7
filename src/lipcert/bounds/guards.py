"""Cheap refusals around a proof: what would run something else than the code that was followed.

The comparison of the model with its traced program (`lipcert.bounds.replay`) is what a certificate relies on.
These guards name the usual reasons in one line each, before anything is run.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrize

from lipcert.errors import InputError, UnknownBoundError, reason

T = TypeVar("T")

# How often a call may be repeated to see whether it is the model that draws random numbers.
_TRIES = 3

# Methods through which a call reaches `forward`.
_CALLS = ("__call__", "_wrapped_call_impl", "_call_impl")


def refuse_tampering(path: str, module: nn.Module) -> None:
    """Raise if calling the module runs anything but the forward of its class."""
    if module._forward_hooks or module._forward_pre_hooks:
        raise UnknownBoundError(
            f"{path} has forward hooks, which may change what it computes (old-style weight_norm, "
            "spectral_norm and pruning use them: make those permanent first)"
        )
    for name in _CALLS:
        maker = getattr(getattr(type(module), name), "__module__", None) or ""
        if maker.partition(".")[0] != "torch":
            raise UnknownBoundError(f"{path}: {type(module).__name__} has a {name} of its own: use forward")
    for name in vars(module):
        if callable(getattr(type(module), name, None)):
            raise UnknownBoundError(
                f"{path} has a {name} of its own, put on the instance, which hides that of its class: "
                "use a class"
            )


def refuse_unsettled(path: str, module: nn.Module) -> None:
    """Raise if the weight that is proved may not be the one that runs."""
    if not module.training:
        return
    if parametrize.is_parametrized(module) or getattr(module, "settles_in_evaluation", False):
        raise InputError(f"{path}: a parametrised weight may change at every use: call model.eval() first")


def refuse_global_hooks() -> None:
    """Raise if every module call runs a hook."""
    everywhere = torch.nn.modules.module
    if everywhere._global_forward_hooks or everywhere._global_forward_pre_hooks:
        raise UnknownBoundError("global forward hooks are registered, which may change what a model computes")


def refuse_tampering_anywhere(model: nn.Module) -> None:
    """Raise if any part of the model, or all of torch, runs something else than its forward."""
    refuse_global_hooks()
    try:
        modules = list(model.named_modules())
    except Exception as error:
        raise UnknownBoundError(f"the parts of the model cannot be listed: {reason(error)}") from error
    for path, module in modules:
        refuse_tampering(path or "model", module)


def precision_settings() -> tuple[Any, ...]:
    """The settings of torch that decide in how many bits an operation computes."""
    autocast = tuple(torch.is_autocast_enabled(device) for device in ("cpu", "cuda", "mps", "xpu"))
    backends = [getattr(torch.backends, name) for name in ("cudnn", "mkldnn")] + [torch.backends.cuda]
    parts = [getattr(b, kind, None) for b in backends for kind in ("conv", "matmul", "rnn")]
    return autocast, tuple(getattr(part, "fp32_precision", None) for part in parts)


def without_randomness(what: str, call: Callable[[], T]) -> T:
    """Return what a call returns, or raise if the global random states move every time it is made."""
    for _ in range(_TRIES):  # another thread may have drawn; what happens every time is the model's doing
        before = _RandomStates()
        result = call()
        moved = before.moved()
        if not moved:
            return result
        before.restore()
    raise UnknownBoundError(f"{what} draws random numbers ({moved}), so it is not one function")


class _RandomStates:
    """The global random states of torch, Python and NumPy as they are now."""

    def __init__(self) -> None:
        self.torch = torch.get_rng_state()
        self.cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
        self.python = random.getstate()
        self.numpy: Any = np.random.get_state(legacy=False)

    def moved(self) -> str:
        """Whose state is another now; empty if none is."""
        now = _RandomStates()
        if not torch.equal(self.torch, now.torch) or any(
            not torch.equal(a, b) for a, b in zip(self.cuda, now.cuda, strict=False)
        ):
            return "torch"
        if self.python != now.python:
            return "random"
        mine, theirs = self.numpy["state"], now.numpy["state"]
        same = mine["pos"] == theirs["pos"] and np.array_equal(mine["key"], theirs["key"])
        return "" if same else "numpy.random"

    def restore(self) -> None:
        """Back to what it was."""
        torch.set_rng_state(self.torch)
        if self.cuda:
            torch.cuda.set_rng_state_all(self.cuda)
        random.setstate(self.python)
        np.random.set_state(self.numpy)
