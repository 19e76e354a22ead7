"""Whether code runs on values, or is being transformed: by vmap, grad, compile or export."""

from __future__ import annotations

import torch
from torch import Tensor


def is_transformed(x: Tensor) -> bool:
    """Then no value can steer Python, and only functional operations are understood."""
    return torch.compiler.is_compiling() or torch._C._functorch.is_functorch_wrapped_tensor(x)
