"""Compute constants in full precision, and refuse certificates of networks that run in fewer bits."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.errors import InputError


def full_precision(device: str) -> contextlib.AbstractContextManager[object]:
    """Compute constants and constrained weights in full float32, without autocast and TF32.

    A compiled step keeps torch's setting of TF32, which cannot change inside a compiled graph.
    """
    is_reduced = device != "meta" and torch.is_autocast_enabled(device)
    autocast = torch.autocast(device, enabled=False) if is_reduced else contextlib.nullcontext()
    if device != "cuda" or torch.compiler.is_compiling():
        return autocast
    both = contextlib.ExitStack()
    both.enter_context(autocast)
    both.enter_context(_without_tf32())
    return both


@contextlib.contextmanager
def _without_tf32() -> Iterator[None]:
    """Let cuBLAS and cuDNN use all bits of float32, and restore their settings afterwards."""
    parts: list[Any] = [
        torch.backends.cuda.matmul,
        getattr(torch.backends.cudnn, "conv", torch.backends.cudnn),
    ]
    name, full = ("fp32_precision", "ieee") if hasattr(parts[0], "fp32_precision") else ("allow_tf32", False)
    before = [getattr(part, name) for part in parts]
    try:
        for part in parts:
            setattr(part, name, full)
        yield
    finally:
        for part, value in zip(parts, before, strict=True):
            setattr(part, name, value)


# Devices without float64.
_SHORT = ("mps",)

# Settings with which cuBLAS makes float64 products of integers, whose errors the bounds do not cover.
_EMULATION = ("CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_EMULATION_STRATEGY")

# The side of the products by which a device is tested.
_TESTED = 256


def double_device(device: torch.device) -> torch.device:
    """Return where float64 numbers of a device are kept: on the CPU if the device has none."""
    return torch.device("cpu") if device.type in _SHORT else device


def in_double(tensor: Tensor) -> Tensor:
    """Return the same numbers in float64 or complex128, on their device if it has such numbers."""
    kind = torch.complex128 if tensor.is_complex() else torch.float64
    return tensor.detach().to(double_device(tensor.device), kind)


def refuse_coarse_doubles(device: torch.device) -> None:
    """Raise unless float64 products of a device are sums of products, and keep denormal numbers."""
    if device.type in ("cpu", "meta"):  # models without numbers are refused elsewhere
        return
    switched = [name for name in _EMULATION if os.environ.get(name, "0") not in ("", "0")]
    if device.type == "cuda" and switched:
        raise InputError(f"{switched[0]}: float64 products on {device} would not be sums; unset it first")
    ones = torch.ones(_TESTED, _TESTED, dtype=torch.float64, device=device)
    # Emulated and fast products round relative to the largest entry of a row, and lose the ones.
    graded, rest = ones.clone(), ones.clone()
    graded[:, 0], rest[0] = 2.0**60, 0.0
    small = torch.full((_TESTED,), 2.0**-1040, dtype=torch.float64, device=device)
    if not bool((graded @ rest == _TESTED - 1).all()) or bool((small * 1.0 == 0).any()):
        raise InputError(
            f"{device}: its float64 products are not sums of products, or it has no denormal numbers, which "
            "the bounds on rounding errors need: certify on the CPU"
        )


def refuse_half_precision(model: nn.Module) -> None:
    """Raise under autocast and for half-precision weights."""
    if torch.is_autocast_enabled() or torch.is_autocast_enabled("cpu"):
        raise InputError("certificates are computed in float64: leave the autocast region first")
    low = {p.dtype for p in model.parameters() if p.dtype in (torch.float16, torch.bfloat16)}
    if low:
        raise InputError(
            f"model: {low.pop()} weights have no certificate as they run; convert with model.float() first"
        )


def refuse_short_products(model: nn.Module) -> None:
    """Raise where float32 products have fewer bits than float32, for claims about the float32 network."""
    if not full_products(any(p.is_cuda for p in model.parameters())):
        raise InputError(
            "float32 products are rounded to fewer bits (TF32 or bfloat16): call "
            'torch.set_float32_matmul_precision("highest") and set every fp32_precision of torch.backends to '
            '"ieee" first, move the model to the CPU, or certify with rounding="float64"'
        )


def full_products(on_cuda: bool) -> bool:
    """Return whether float32 matrix products and convolutions keep all their bits."""
    try:
        full = torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # torch raises once its newer settings differ from each other
        full = False
    return full and not _reduced("mkldnn") and not (on_cuda and _reduced("cudnn"))


def _reduced(backend: str) -> bool:
    """Return whether convolutions or products of a backend may use shorter floats."""
    part = getattr(torch.backends, backend)
    kinds: list[Any] = [getattr(part, kind, None) for kind in ("conv", "matmul")]
    settings = [kind.fp32_precision for kind in kinds if hasattr(kind, "fp32_precision")]
    if not settings:  # torch before 2.9
        return backend == "cudnn" and bool(part.allow_tf32)
    return any(setting in ("tf32", "bf16") for setting in settings)
