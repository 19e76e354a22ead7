"""The tables of `lipcert estimate`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from lipcert.costs import Estimated
from lipcert.errors import InputError
from lipcert.models.memory import told
from lipcert.tables import Table
from lipcert.tables.kinds import COUNT, NOTHING, percent
from lipcert.tables.table import text_table

_UNITS = ((86_400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def device_named(name: str) -> torch.device | None:
    """Return the device to time on; None for `none`."""
    if name == "none":
        return None
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise InputError(
            f"--device: expected a device that torch can use here, such as cpu, or none, got {name!r}"
        ) from None
    return device


def cost_tables(costs: Estimated, device: str) -> list[Table[Any]]:
    """Lay out the sizes of a recipe, and the work of its parts."""
    return [_sizes(costs), _work(costs, device)]


def _sizes(costs: Estimated) -> Table[Any]:
    training = costs.parts[0]
    every = costs.recipe.train.checkpoint_every
    rows = [
        ("parameters", COUNT.text(costs.parameters), "exact"),
        ("training steps", COUNT.text(costs.steps), "exact"),
        ("a checkpoint", told(costs.checkpoint), f"exact: {costs.checkpoint:,} bytes"),
        ("checkpoints", COUNT.text(costs.checkpoints), f"checkpoint_every: {every}{_writing(costs)}"),
        ("memory of a training", told(training.memory), "an estimate, beside images and work space"),
        ("images, as bytes", told(costs.data), "of all splits that are used"),
    ]
    return replace(text_table(["what", "size", "remark"], rows), title=f"{costs.recipe.name}: sizes")


def _writing(costs: Estimated) -> str:
    """Say what part of the time checkpoints take."""
    seconds = costs.parts[0].seconds
    if not seconds:
        return ""
    written = costs.checkpoints * costs.checkpoint_seconds
    return f", {percent(written / (seconds + written))} of the time of the training"


def _work(costs: Estimated, device: str) -> Table[Any]:
    rows = [
        (
            part.name,
            COUNT.text(part.rounds),
            _scientific(part.flops),
            told(part.bytes),
            told(part.memory),
            duration(part.seconds) if part.seconds else NOTHING,
        )
        for part in costs.parts
    ]
    titles = ["part", "rounds", "operations", "read and written", "memory", "time"]
    return replace(
        text_table(titles, rows), title=f"{costs.recipe.name}: work, estimated", note=_note(costs, device)
    )


def _note(costs: Estimated, device: str) -> str:
    counted = "operations are counted on shapes, augmentation is not"
    if not any(part.seconds for part in costs.parts):
        return f"{counted}; nothing was timed"
    threads = f", {torch.get_num_threads()} threads" if device == "cpu" else ""
    return (
        f"{counted}; times are from runs of single operations on {device}{threads} that make up "
        f"{percent(costs.measured)} of the work, the rest in proportion"
    )


def _scientific(value: float) -> str:
    return f"{value:.1e}"


def duration(seconds: float) -> str:
    """Write a time with two digits and its unit.

    Example:
        >>> duration(7200.0), duration(0.25)
        ('2 h', '0.25 s')
    """
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= 1.5 * size), _UNITS[-1])
    return f"{float(f'{seconds / size:.2g}'):g} {unit}"
