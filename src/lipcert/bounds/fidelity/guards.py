"""Cheap checks before a proof, which refuse a model that would run other code than the traced one.

A certificate relies on the comparison of the model with its traced program (replay.py).
These guards report the usual reasons in one line each, before anything runs.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from lipcert.errors import InputError, UnknownBoundError, reason

T = TypeVar("T")

# The generator behind `random.random` and similar functions.
_PYTHON = random.random.__self__  # type: ignore[attr-defined]

# How often a call is repeated to find out whether the model itself draws random numbers.
_TRIES = 10

# Methods through which a call reaches `forward`.
_CALLS = ("__call__", "_wrapped_call_impl", "_call_impl")


def refuse_hooks(path: str, module: nn.Module) -> None:
    """Raise if calling the module runs more than its forward."""
    if module._forward_hooks or module._forward_pre_hooks:
        raise UnknownBoundError(
            f"{path} has forward hooks, which may change what it computes (old-style weight_norm, "
            "spectral_norm and pruning use them: make those permanent first)"
        )


def refuse_foreign_calls(path: str, module: nn.Module) -> None:
    """Raise if calling the module may not run its forward, because its class has its own `__call__`."""
    for name in _CALLS:
        maker = getattr(getattr(type(module), name), "__module__", None) or ""
        if maker.partition(".")[0] != "torch":
            raise UnknownBoundError(f"{path}: {type(module).__name__} defines its own {name}: use forward")


def refuse_hidden_methods(path: str, module: nn.Module) -> None:
    """Raise if an attribute of the instance hides a method of its class, on which the rule relies."""
    for name in vars(module):
        if callable(getattr(type(module), name, None)):
            raise UnknownBoundError(
                f"{path} has a {name} on the instance, which hides that of its class: use a class"
            )


def refuse_unsettled(path: str, module: nn.Module) -> None:
    """Raise if the weight that is proved may differ from the weight that runs."""
    if getattr(module, "_is_estimating", False):
        raise InputError(f"{path}: its weights have estimated norms now: leave estimated_weights first")
    if not module.training:
        return
    if parametrize.is_parametrized(module) or getattr(module, "settles_in_evaluation", False):
        raise InputError(f"{path}: a parametrised weight may change at every use: call model.eval() first")


def refuse_global_hooks() -> None:
    """Raise if a hook runs at every module call."""
    everywhere = torch.nn.modules.module
    if everywhere._global_forward_hooks or everywhere._global_forward_pre_hooks:
        raise UnknownBoundError("global forward hooks are registered, which may change what a model computes")


def refuse_modes() -> None:
    """Raise inside modes that are not torch's own, which may replace any operation."""
    functions = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
    for mode in [*functions, *_get_current_dispatch_mode_stack()]:
        if type(mode).__module__.partition(".")[0] != "torch":
            raise UnknownBoundError(f"{type(mode).__name__} is active, a mode that may replace any operation")


def refuse_tampering_anywhere(model: nn.Module) -> None:
    """Raise if any part of the model, or all of torch, runs other code than its forward."""
    refuse_global_hooks()
    refuse_modes()
    try:
        modules = list(model.named_modules())
    except Exception as error:
        raise UnknownBoundError(f"the parts of the model cannot be listed: {reason(error)}") from error
    for path, weight in model.named_parameters():
        if is_lazy(weight):  # its layer has a hook that fills the weight in
            raise InputError(f"{path} has no numbers yet: call the model once first")
    for path, module in modules:
        refuse_hooks(path or "model", module)
        refuse_foreign_calls(path or "model", module)
        refuse_hidden_methods(path or "model", module)


def precision_settings() -> tuple[Any, ...]:
    """Return the settings of torch that decide the precision of an operation."""
    autocast = tuple(torch.is_autocast_enabled(device) for device in ("cpu", "cuda", "mps", "xpu"))
    backends = [getattr(torch.backends, name) for name in ("cudnn", "mkldnn")] + [torch.backends.cuda]
    parts = [getattr(b, kind, None) for b in backends for kind in ("conv", "matmul", "rnn")]
    return autocast, tuple(getattr(part, "fp32_precision", None) for part in parts)


def without_randomness(what: str, call: Callable[[], T]) -> T:
    """Return the result of a call, or raise if it draws random numbers from torch, Python or NumPy."""
    draws = _Draws()
    for _ in range(_TRIES):  # another thread may have drawn; only the model draws every time
        before = _states()
        with draws:
            result = call()
        moved = draws.operation or _moved(before, _states())
        if not moved or (moved == "random" and not _draws_from_python(call)):
            return result
        if moved != "numpy.random":
            break
    raise UnknownBoundError(f"{what} draws random numbers ({moved}), so the model is not a fixed function")


def _draws_from_python(call: Callable[[], object]) -> bool:
    """Return whether a call draws from Python's global generator on this thread: servers draw on theirs."""
    if threading.active_count() == 1:
        return True
    drawn, before = [], sys.getprofile()

    def watch(frame: object, event: str, function: Any) -> None:
        if event == "c_call" and getattr(function, "__self__", None) is _PYTHON:
            drawn.append(function)

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
    return bool(drawn)


class _Draws(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that records an operation of torch that draws random numbers, on this thread."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operation = ""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function.overloadpacket.__name__
        is_idle = name.endswith("dropout") and not args[-1]  # in evaluation mode
        if torch.Tag.nondeterministic_seeded in function.tags and not is_idle:
            self.operation = self.operation or f"torch's {name}"
        return function(*args, **(kwargs or {}))


def _states() -> tuple[Any, Any]:
    """Return the random states of Python and NumPy, which all threads share."""
    numpy: Any = np.random.get_state(legacy=False)
    return random.getstate(), (numpy["state"]["pos"], numpy["state"]["key"].tobytes())


def _moved(before: tuple[Any, Any], after: tuple[Any, Any]) -> str:
    names = ("random", "numpy.random")
    return next((n for n, a, b in zip(names, before, after, strict=True) if a != b), "")
