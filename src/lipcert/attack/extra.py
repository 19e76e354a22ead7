"""Import the packages of the extra `attack` when an attack needs them."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import torch

from lipcert.errors import InputError


def needed(name: str) -> Any:
    """Import a package, or raise an error that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError("attacks need an extra: pip install 'lipcert[attack]'") from None


@contextlib.contextmanager
def always_the_same(device: torch.device) -> Iterator[None]:
    """Draw the same random numbers inside every time, and leave those outside as they were."""
    others = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(devices=others, device_type="cuda" if device.type == "cpu" else device.type):
        torch.manual_seed(0)
        yield
