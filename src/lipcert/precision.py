"""No certificate where the network would be evaluated with fewer bits than its weights have."""

from __future__ import annotations

import torch
from torch import nn

from lipcert.errors import InputError


def refuse_reduced_precision(model: nn.Module) -> None:
    """Raise under autocast, under TF32 or a like setting, and for half-precision weights."""
    if torch.is_autocast_enabled() or torch.is_autocast_enabled("cpu"):
        raise InputError("certificates are computed in float64: leave the autocast region first")
    low = {p.dtype for p in model.parameters() if p.dtype in (torch.float16, torch.bfloat16)}
    if low:
        raise InputError(
            f"model: {low.pop()} weights have no certificate as they run; convert with model.float() first"
        )
    if torch.get_float32_matmul_precision() != "highest":
        raise InputError(
            "float32 products are rounded to fewer bits (TF32 or bfloat16): call "
            'torch.set_float32_matmul_precision("highest") first'
        )
    if torch.backends.cudnn.allow_tf32 and any(p.is_cuda for p in model.parameters()):
        raise InputError(
            "cuDNN rounds float32 convolutions to TF32: set torch.backends.cudnn.allow_tf32 = False, or move "
            "the model to the CPU, first"
        )
