"""Check the values of all schedules before a training starts: at its start, its end and their knots."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from lipcert.errors import InputError
from lipcert.losses import Loss
from lipcert.train.schedules.base import Schedule


def check_schedules(loss: Loss, optimizer: Mapping[str, Any], schedules: Mapping[str, Schedule]) -> None:
    """Raise if a value is impossible at some time; `optimizer` has the numbers to start with."""
    for t in sorted({0.0, 1.0, *(knot for schedule in schedules.values() for knot in schedule.knots)}):
        numbers: dict[str, float] = {}
        for key, schedule in schedules.items():
            part, _, name = key.partition(".")
            if part == "loss":
                numbers[name] = _value(key, schedule, getattr(loss, name), t)
            elif name in optimizer:
                _check_rate(key, _value(key, schedule, optimizer[name], t), t)
        _check_loss(loss, numbers, t)


def _value(key: str, schedule: Schedule, start: float, t: float) -> float:
    try:
        return schedule(start, t)
    except (ArithmeticError, ValueError) as error:
        raise InputError(f"schedule.{key}: has no value {_when(t)} ({error})") from None


def _check_rate(key: str, value: float, t: float) -> None:
    if not 0 <= value < math.inf:
        raise InputError(f"schedule.{key}: expected a number >= 0 {_when(t)}, got {value:g}")


def _check_loss(loss: Loss, numbers: Mapping[str, float], t: float) -> None:
    """Let the loss check its numbers; its complaint begins with the name of one of them."""
    try:
        dataclasses.replace(loss, **numbers)
    except InputError as error:
        named = str(error).partition(":")[0]
        about = [named] if named in numbers else sorted(numbers)
        keys = ", ".join(f"schedule.loss.{name}" for name in about)
        raise InputError(f"{keys}: is impossible {_when(t)} ({error})") from None


def _when(t: float) -> str:
    return {0.0: "at the start", 1.0: "at the end"}.get(t, f"at fraction {t:g} of the training")
