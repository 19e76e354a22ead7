"""Count the operations of a training step for which a program on an accelerator waits for the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

# Operations that read a value of the device, or whose number of outputs depends on values.
READS = {
    "_local_scalar_dense",
    "item",
    "is_nonzero",
    "equal",
    "nonzero",
    "masked_select",
    "_unique2",
    "unique_dim",
    "unique_consecutive",
    "bincount",
    "repeat_interleave.Tensor",
}

# Solvers that look at the outcome themselves: torch's documentation says that they synchronise a CUDA device.
LOOKS = {
    "_linalg_eigh",
    "_linalg_svd",
    "_linalg_check_errors",
    "linalg_eig",
    "linalg_lstsq",
    "_linalg_slogdet",
}

# Its implementation chooses the degree of its series from norms, on the CPU.
LOOKS |= {"linalg_matrix_exp"}


class Reads(TorchDispatchMode):
    """Notes every such operation, except on tensors that are on the CPU anyway."""

    def __init__(self, host: Sequence[Tensor] = ()) -> None:
        super().__init__()
        self._host = {tensor.data_ptr() for tensor in host}
        self.found: list[str] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        _, _, whole = str(func).partition(".")
        name = whole.partition(".")[0]
        own = bool(args) and isinstance(args[0], Tensor) and args[0].data_ptr() in self._host
        if own:
            return func(*args, **(kwargs or {}))
        if name in READS | LOOKS or whole in READS or _by_mask(name, args):
            self.found.append(whole)
        return func(*args, **(kwargs or {}))


def _by_mask(name: str, args: Sequence[Any]) -> bool:
    """Return whether an index is a mask, whose length a GPU has to tell."""
    if name not in ("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"):
        return False
    masks = [i for i in args[1] if isinstance(i, Tensor) and i.dtype in (torch.bool, torch.uint8)]
    # A mask of one element may be written into by `where`; others are looked for.
    return bool(masks)
