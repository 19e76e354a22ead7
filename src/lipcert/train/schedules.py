"""Schedules: a number as a function of its starting value and the fraction t of training done.

They use fractions, not epochs, so that a schedule keeps its shape when a recipe's budget changes. Any number
of the loss or the optimiser can have one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from lipcert.errors import InputError
from lipcert.registry import Registry


class Schedule(ABC):
    """The contract schedule(start, t) → value, with t from 0 to 1."""

    @abstractmethod
    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""


SCHEDULES: Registry[Schedule] = Registry("schedule", package="lipcert.train")


@SCHEDULES.register("polynomial", example={"end": 0.1, "gamma": 2})
@dataclass(frozen=True)
class Polynomial(Schedule):
    """The curve end + (start − end)(1 − t)^gamma: fast at first.

    Example:
        >>> Polynomial(end=1.0, gamma=2)(start=5.0, t=0.5)
        2.0
    """

    end: float
    gamma: float = 1.0

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        return self.end + (start - self.end) * math.pow(1 - t, self.gamma)


@SCHEDULES.register("linear", example={"end": 0.1})
@dataclass(frozen=True)
class Linear(Schedule):
    """A straight line from the start to `end`, reached at fraction `until` and kept.

    Example:
        >>> Linear(end=20.0, until=0.5)(start=0.0, t=0.25)
        10.0
    """

    end: float
    until: float = 1.0

    def __post_init__(self) -> None:
        _fraction("until", self.until)

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        return start + (self.end - start) * min(t / self.until, 1.0)


@SCHEDULES.register("ramp")
@dataclass(frozen=True)
class Ramp(Schedule):
    """A straight line from `first` times the value up to the value, reached at fraction `until` and kept.

    Example:
        >>> Ramp(until=0.5)(start=4.0, t=0.25)
        2.0
    """

    first: float = 0.0
    until: float = 1.0

    def __post_init__(self) -> None:
        _fraction("until", self.until)

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        return start * (self.first + (1 - self.first) * min(t / self.until, 1.0))


@SCHEDULES.register("logarithmic")
@dataclass(frozen=True)
class Logarithmic(Schedule):
    r"""GloRo's ε: $\log((e^v - e^{fv})t + e^{fv})$, from f·v up to the full value v.

    Example:
        >>> Logarithmic()(start=0.5, t=1.0)
        0.5
    """

    first: float = 0.01

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        if t >= 1:
            return start  # exact, because certificates compare their ε with that of training
        low = math.exp(self.first * start)
        return math.log((math.exp(start) - low) * t + low)


@SCHEDULES.register("multistep", example={"at": [0.5]})
@dataclass(frozen=True)
class MultiStep(Schedule):
    """The start multiplied by `factor` at each of the fractions `at`.

    Example:
        >>> MultiStep(at=[0.4, 0.6], factor=0.5)(start=1.0, t=0.4)
        0.5
    """

    at: Sequence[float]
    factor: float = 0.1

    def __post_init__(self) -> None:
        for fraction in self.at:
            _fraction("at", fraction)

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        return start * self.factor ** sum(t >= fraction for fraction in self.at)


@SCHEDULES.register("triangular")
@dataclass(frozen=True)
class Triangular(Schedule):
    """Straight lines: 0 → value at `peak` → value·`low` at `knee` → 0.

    Example:
        >>> Triangular()(start=1.0, t=0.4)
        1.0
    """

    peak: float = 0.4
    knee: float = 0.8
    low: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.peak < self.knee < 1:
            raise InputError(f"peak, knee: expected 0 < peak < knee < 1, got {self.peak}, {self.knee}")

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        if t <= self.peak:
            return start * t / self.peak
        if t <= self.knee:
            return start * (1 - (1 - self.low) * (t - self.peak) / (self.knee - self.peak))
        return start * self.low * (1 - t) / (1 - self.knee)


@SCHEDULES.register("trapezoid")
@dataclass(frozen=True)
class Trapezoid(Schedule):
    """Straight lines: 0 → value at `rise`, kept until `fall`, → 0 at the end.

    Example:
        >>> Trapezoid(rise=0.1, fall=0.5)(start=1.0, t=0.75)
        0.5
    """

    rise: float = 0.05
    fall: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.rise <= self.fall < 1:
            raise InputError(f"rise, fall: expected 0 < rise <= fall < 1, got {self.rise}, {self.fall}")

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        return start * min(t / self.rise, 1.0, (1 - t) / (1 - self.fall))


@SCHEDULES.register("one-cycle")
@dataclass(frozen=True)
class OneCycle(Schedule):
    """Half a cosine up from value/`divide` to the value at `peak`, half a cosine down to value/`final`.

    Example:
        >>> OneCycle()(start=1.0, t=0.3)
        1.0
    """

    peak: float = 0.3
    divide: float = 25.0
    final: float = 1e4

    def __post_init__(self) -> None:
        _fraction("peak", self.peak)

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        if t <= self.peak:
            return _half_cosine(start / self.divide, start, t / self.peak)
        return _half_cosine(start, start / self.final, (t - self.peak) / (1 - self.peak))


@SCHEDULES.register("cosine")
@dataclass(frozen=True)
class Cosine(Schedule):
    """Half a cosine from the start down to `end`.

    Example:
        >>> Cosine()(start=1.0, t=0.5)
        0.5
    """

    end: float = 0.0

    def __call__(self, start: float, t: float) -> float:
        """Return the value at fraction t."""
        return _half_cosine(start, self.end, t)


def _half_cosine(first: float, last: float, t: float) -> float:
    return last + (first - last) * (1 + math.cos(math.pi * t)) / 2


def _fraction(name: str, value: float) -> None:
    if not 0 < value <= 1:
        raise InputError(f"{name}: expected a fraction of training in (0, 1], got {value!r}")
