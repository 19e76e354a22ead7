"""Fingerprints of tensors: equal for equal numbers, from any file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor


def tensors_sha256(tensors: Mapping[str, Tensor]) -> str:
    """Hash names, types, shapes and every bit of the values, in the order of the names.

    Example:
        >>> a = tensors_sha256({"w": torch.zeros(2)})
        >>> a == tensors_sha256({"w": -torch.zeros(2)})  # the sign of zero is a bit, too
        False
    """
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(_heading(name, tensors[name]))
        digest.update(_bytes(tensors[name]).numpy().data)
    return digest.hexdigest()


def _heading(name: str, tensor: Tensor) -> bytes:
    return f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode()


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
