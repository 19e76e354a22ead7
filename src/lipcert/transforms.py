"""Whether code runs on values, or is being transformed: by vmap, grad, jvp, compile, export or trace."""

from __future__ import annotations

import torch
from torch import Tensor


def is_transformed(x: Tensor) -> bool:
    """Then no value can steer Python, and only functional operations are understood."""
    return (
        torch.compiler.is_compiling()
        or torch._C._is_tracing()
        or torch._C._functorch.is_functorch_wrapped_tensor(x)
        or torch._C._functorch.is_legacy_batchedtensor(x)
        or torch.autograd.forward_ad._current_level >= 0
    )
