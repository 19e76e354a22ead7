"""The states of torch's random generators on the CPU and on an accelerator: dropout draws from them."""

from __future__ import annotations

import torch
from torch import Tensor


def random_states(device: torch.device) -> dict[str, Tensor]:
    """Return the states by type of device: the CPU's, and that of the accelerator in use."""
    states = {"cpu": torch.get_rng_state()}
    if device.type != "cpu":
        states[device.type] = torch.get_device_module(device).get_rng_state()
    return states


def set_random_states(states: dict[str, Tensor], device: torch.device) -> None:
    """Continue with these states; one of another type of accelerator is left out."""
    torch.set_rng_state(states["cpu"])
    if device.type != "cpu" and device.type in states:
        torch.get_device_module(device).set_rng_state(states[device.type])
