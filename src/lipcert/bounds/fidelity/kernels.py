"""Ask torch which kernels run float32 convolutions, and whether denormal numbers survive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lipcert.errors import InputError

# Kernels that add up products, in any order. Others use Winograd or Fourier transforms, or may do so.
_SUMS = frozenset(
    {
        "CudaDepthwise2d",
        "Empty",
        "Mkldnn",
        "MkldnnEmpty",
        "MkldnnTranspose",
        "Slow2d",
        "SlowDilated2d",
        "SlowTranspose2d",
    }
)

# The setting that makes torch use a kernel that adds up products.
_SWITCH = {
    "NnpackSpatial": "turn oneDNN on (torch.backends.mkldnn.set_flags(True)) or NNPACK off "
    "(torch.backends.nnpack.set_flags(False))",
    "Cudnn": "set torch.backends.cudnn.enabled = False",
    "CudnnTranspose": "set torch.backends.cudnn.enabled = False",
}

# Batch sizes between which torch changes kernels.
_BATCHES = (1, 2, 15, 16, 64)

# The smallest part of a tensor that goes to one thread.
_GRAIN = 1 << 15


class AsksForKernels(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that refuses float32 convolutions that torch would not compute by sums of products."""

    def __init__(self, batches: Sequence[int] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._batches = sorted({*_BATCHES, *batches})

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Check the kernel before every convolution."""
        name = str(function.overloadpacket)
        if name == "aten.convolution":
            self._ask(*args)
        elif "conv" in name and "conj" not in name:
            raise InputError(f"rounding: float32 certificates do not cover how {name} sums")
        return function(*args, **(kwargs or {}))

    def _ask(self, x: Tensor, *rest: Any) -> None:
        if x.dtype != torch.float32:
            return
        for batch in self._batches:
            kernel = _kernel(x[:1].expand(batch, *x.shape[1:]), *rest)
            if kernel not in _SUMS:
                switch = _SWITCH.get(kernel, "certify with rounding='float64' instead")
                raise InputError(
                    f"rounding: torch computes a float32 convolution of {batch} samples with {kernel}, which "
                    f"does not add up plain products; {switch}"
                )


def _kernel(x: Tensor, weight: Tensor, bias: Tensor | None, *settings: Any) -> str:
    """Return the name of the kernel that torch would use."""
    found: Any = torch._C._select_conv_backend(x, weight, bias, *settings)
    kinds: Any = getattr(torch._C, "_ConvBackend")  # noqa: B009  torch's stubs have another name
    # torch has no Python name for this kernel, which stands between two that have one.
    if int(kinds.Mkldnn) < int(found) < int(kinds.MkldnnEmpty):
        return "MkldnnTranspose"
    return str(found).rpartition(".")[2]


def sums_products(device: torch.device) -> bool:
    """Return whether all float32 products on a device are sums of products, according to its settings."""
    mkldnn: Any = torch.backends.mkldnn
    return device.type == "cpu" and mkldnn.is_available() and bool(torch._C._get_mkldnn_enabled())


def refuse_flushed_denormals(all_threads: bool = False) -> None:
    """Raise if denormal numbers become zero, on this thread or any of torch's."""
    small = torch.full(
        (_GRAIN * torch.get_num_threads() if all_threads else 1,), 2.0**-1040, dtype=torch.float64
    )
    if bool((small * 1.0 == 0).any()):
        raise InputError(
            "denormal numbers are flushed to zero, which the bounds on rounding errors do not cover: call "
            "torch.set_flush_denormal(False) first"
        )
