"""Keep the training images on the device, or on the host with the next batch on its way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

# Whether images live on the device: as they fit, always or never.
OnDevice = Literal["auto"] | bool

# The part of a device's free memory that images may take.
_SHARE = 0.5


def lives_on(device: torch.device, images: Tensor, wanted: OnDevice, free: int | None = None) -> bool:
    """Return whether the images are to be moved to the device; `free` bytes instead of those found there."""
    if wanted != "auto":
        return wanted
    if device.type == "cpu":  # they are there already, perhaps mapped from a file
        return False
    free = free_memory(device) if free is None else free
    return images.nbytes <= _SHARE * free


def free_memory(device: torch.device) -> int:
    """Return the free bytes of an accelerator; 0 where torch cannot tell."""
    if device.type != "cuda":
        return 0
    free, _ = torch.cuda.mem_get_info(device)
    return int(free)


class Ahead:
    """Images on the host, of which the next batch is sent while the device computes the present one.

    Batches go through pinned memory where the device is a GPU, so the program does not wait for a copy.
    """

    def __init__(self, images: Tensor, device: torch.device) -> None:
        self._images, self._device = images, device
        self._sent: list[tuple[Tensor, Tensor]] = []

    def send(self, pieces: Sequence[Tensor]) -> None:
        """Send the images of the next batch, piece by piece."""
        self._sent = [(piece, self._load(piece)) for piece in pieces]

    def take(self, piece: Tensor) -> Tensor:
        """Return the images of a piece, which were sent before if it is the expected one."""
        if self._sent:
            expected, images = self._sent.pop(0)
            if torch.equal(expected, piece):  # both on the host
                return images
            self._sent = []
        return self._load(piece)

    def _load(self, piece: Tensor) -> Tensor:
        images = self._images[piece]
        if self._device.type == "cuda":
            images = images.pin_memory()
        return images.to(self._device, non_blocking=True)
