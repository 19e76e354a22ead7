"""Fingerprints of tensors: the same for the same numbers, whatever file they came from."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

# Bytes that one thread takes at a time.
_PIECE = 2**20


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
    """Changes with the numbers, by accident at least; several times as fast as `tensors_sha256`."""
    contents = {name: memoryview(_bytes(tensor).numpy().data) for name, tensor in tensors.items()}
    pieces = [piece[i : i + _PIECE] for piece in contents.values() for i in range(0, len(piece), _PIECE)]
    digest = hashlib.sha256(b"".join(_heading(name, tensor) for name, tensor in tensors.items()))
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:  # sums do not hold Python's lock
        for found in pool.map(_sums, pieces):
            digest.update(found)
    return digest.hexdigest()


def _sums(piece: memoryview) -> bytes:
    """A CRC, which finds any change of up to 32 bits in a row, and the sum: both survive no likely change."""
    words = np.frombuffer(piece[: len(piece) // 8 * 8], dtype=np.uint64)
    return zlib.crc32(piece).to_bytes(4, "big") + int(words.sum()).to_bytes(8, "big")


def _heading(name: str, tensor: Tensor) -> bytes:
    return f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode()


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
