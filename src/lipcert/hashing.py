"""Fingerprints of tensors: the same for the same numbers, whatever file they came from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache

import torch
from torch import Tensor

# Numbers of 32 bits that are summed together in a checksum.
_BLOCK = 4096


def tensors_sha256(tensors: Mapping[str, Tensor]) -> str:
    """Of names, types, shapes and every bit of the values, in the order of the names.

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


def tensors_checksum(tensors: Mapping[str, Tensor]) -> str:
    """As `tensors_sha256`, several times as fast: finds changes, but not those made to deceive it."""
    digest = hashlib.sha256()
    for name, tensor in tensors.items():
        digest.update(_heading(name, tensor))
        content = _bytes(tensor)
        whole = len(content) // (4 * _BLOCK) * (4 * _BLOCK)
        # Of every block a sum with odd factors, modulo 2³²: a change of any number changes it.
        blocks = content[:whole].view(torch.int32).view(-1, _BLOCK) @ _factors()
        digest.update(blocks.numpy().data)
        digest.update(content[whole:].numpy().data)
    return digest.hexdigest()


@cache
def _factors() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(-(2**31), 2**31, (_BLOCK,), dtype=torch.int32, generator=generator) | 1


def _heading(name: str, tensor: Tensor) -> bytes:
    return f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode()


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
