"""Detect whether code runs on values or is transformed by vmap, grad, jvp, compile, export or trace."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextvars import ContextVar

import torch
from torch import Tensor


def is_transformed(x: Tensor) -> bool:
    """Return whether a transform is active: then Python cannot branch on values."""
    return (
        torch.compiler.is_compiling()
        or torch._C._is_tracing()
        or torch._C._functorch.is_functorch_wrapped_tensor(x)
        or torch._C._functorch.is_legacy_batchedtensor(x)
        or torch.autograd.forward_ad._current_level >= 0
    )


def outside_transforms(tensors: Iterable[Tensor]) -> contextlib.AbstractContextManager[object]:
    """Return a context for values that outlive a transform which does not touch these tensors."""
    if any(torch._C._functorch.is_functorch_wrapped_tensor(x) for x in tensors):
        return contextlib.nullcontext()
    return torch._C._DisableFuncTorch()


_pretending: ContextVar[bool] = ContextVar("_pretending", default=False)


@contextlib.contextmanager
def pretending() -> Iterator[None]:
    """Let code run on tensors without numbers inside this context; it is counted, its results are void."""
    token = _pretending.set(True)
    try:
        yield
    finally:
        _pretending.reset(token)


def is_pretending() -> bool:
    """Return whether only the work of this code is counted."""
    return _pretending.get()
