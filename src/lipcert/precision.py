"""Constants in full precision, and no certificate where a network would have fewer bits than its weights."""

from __future__ import annotations

import contextlib

import torch
from torch import nn

from lipcert.errors import InputError


def full_precision(device: str) -> contextlib.AbstractContextManager[object]:
    """For constants and constrained weights: never in half precision, whatever the forward pass is."""
    if device == "meta" or not torch.is_autocast_enabled(device):
        return contextlib.nullcontext()
    return torch.autocast(device, enabled=False)


def refuse_reduced_precision(model: nn.Module) -> None:
    """Raise under autocast, under TF32 or a like setting, and for half-precision weights."""
    if torch.is_autocast_enabled() or torch.is_autocast_enabled("cpu"):
        raise InputError("certificates are computed in float64: leave the autocast region first")
    low = {p.dtype for p in model.parameters() if p.dtype in (torch.float16, torch.bfloat16)}
    if low:
        raise InputError(
            f"model: {low.pop()} weights have no certificate as they run; convert with model.float() first"
        )
    on_cuda = any(p.is_cuda for p in model.parameters())
    if not _full_products() or _reduced("mkldnn") or (on_cuda and _reduced("cudnn")):
        raise InputError(
            "float32 products are rounded to fewer bits (TF32 or bfloat16): call "
            'torch.set_float32_matmul_precision("highest") and set every fp32_precision of torch.backends to '
            '"ieee" first, or move the model to the CPU'
        )


def _full_products() -> bool:
    try:
        return torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # torch refuses to answer once its newer settings differ from each other
        return False


def _reduced(backend: str) -> bool:
    """Whether convolutions or products of a backend may use shorter floats."""
    part = getattr(torch.backends, backend)
    settings = [getattr(getattr(part, kind, None), "fp32_precision", "none") for kind in ("conv", "matmul")]
    old = bool(getattr(part, "allow_tf32", False)) if backend == "cudnn" else False
    return old or any(setting in ("tf32", "bf16") for setting in settings)
