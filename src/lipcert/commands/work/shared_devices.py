"""Start the processes that share the work of one command, as a training does."""

from __future__ import annotations

from typing import cast

import torch

from lipcert.certificates.shards import ALONE, Shard
from lipcert.errors import InputError
from lipcert.train.hardware import Accelerator, Hardware, shard_of, started


def shared_devices(device: torch.device, devices: str) -> tuple[torch.device, Shard]:
    """Return this process's device and its part of the work; torchrun and SLURM may have started others."""
    count, nodes = started(devices, 1)
    if (str(count), nodes) == ("1", 1):
        return device, ALONE
    if device.index is not None and device.type != "cpu":
        raise InputError(
            f"--devices: shares {device.type} devices from the first on; give --device {device.type}"
        )
    fabric = Hardware(accelerator=cast(Accelerator, device.type), devices=devices).launch()
    return fabric.device, shard_of(fabric)
