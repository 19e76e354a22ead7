"""Kinds of values, and the one format of each: this file decides how every number is printed.

A column says its kind. Nothing is guessed from a title, and no other module formats a number of a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from statistics import fmean, mean, stdev

NOTHING = "–"  # where there is no value


@dataclass(frozen=True)
class Deviation:
    """The mean of several values with their standard deviation; None for a single value."""

    mean: float
    deviation: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Deviation:
        """Sum up values, at least one."""
        return cls(mean(values), stdev(values) if len(values) > 1 else None)


@dataclass(frozen=True)
class Range:
    """Several values, shown as their mean with the least and the most of them."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> Range:
        """Sum up values, at least one."""
        return cls(tuple(values))

    @property
    def least(self) -> float:
        """Return the least value."""
        return min(self.values)

    @property
    def mean(self) -> float:
        """Return the mean."""
        return fmean(self.values)

    @property
    def most(self) -> float:
        """Return the largest value."""
        return max(self.values)


@dataclass(frozen=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float


Value = str | int | float | Deviation | Range | Interval | None


@dataclass(frozen=True)
class Kind:
    """Describe what a column holds: how one number is written, and in which unit."""

    name: str
    number: Callable[[float], str]
    scale: float = 1.0  # 100 for fractions that are shown in percent
    is_left: bool = False  # aligned

    def text(self, value: Value) -> str:
        """Write a value; statistics of several values have one decimal, or two where one would read 0.0."""
        match value:
            case None:
                return NOTHING
            case str():
                return value
            case Deviation():
                return self._deviation(value)
            case Range(values):
                shown = [self.scale * one for one in values]
                return f"{fmean(shown):.1f} ({min(shown):.1f} … {max(shown):.1f})"
            case Interval(low, high):
                return f"{self.text(low)} … {self.text(high)}"
            case int() | float():
                return self.number(value if self.scale == 1 else self.scale * value)

    def _deviation(self, value: Deviation) -> str:
        if value.deviation is None:
            return self._fixed(value.mean, 1)
        digits = 2 if self.scale != 1 and 0 < self.scale * value.deviation < 0.05 else 1
        return f"{self._fixed(value.mean, digits)} ± {self._fixed(value.deviation, digits)}"

    def _fixed(self, value: float, digits: int) -> str:
        return f"{self.scale * value:.{digits}f}"


def printed_radius(radius: float) -> str:
    """Write a requested radius as the field does.

    Example:
        >>> printed_radius(36 / 255), printed_radius(0.15)
        ('36/255', '0.15')
    """
    pixels = radius * 255
    return f"{round(pixels)}/255" if radius and abs(pixels - round(pixels)) < 1e-9 else f"{radius:g}"


def parsed_radius(text: str) -> float:
    """Read what `printed_radius` writes.

    Example:
        >>> parsed_radius("36/255") == 36 / 255, parsed_radius("0.15")
        (True, 0.15)
    """
    pixels, slash, of = text.partition("/")
    return float(pixels) / float(of) if slash else float(text)


def proved_radius(radius: float) -> str:
    """Write a certified radius with four decimals, never more than it is.

    Example:
        >>> proved_radius(0.45356), proved_radius(math.inf)
        ('0.4535', '∞')
    """
    return f"{math.floor(1e4 * radius) / 1e4:.4f}" if math.isfinite(radius) else "∞"


_DOWN = Context(prec=6, rounding=ROUND_FLOOR)


def from_below(value: float) -> str:
    """Write a lower bound with six digits that are not above it.

    Example:
        >>> from_below(0.9999999), from_below(2.0)
        ('0.999999', '2')
    """
    return f"{float(_DOWN.create_decimal_from_float(value)):.6g}"


def shape_text(shape: Sequence[int]) -> str:
    """Write a shape.

    Example:
        >>> shape_text([3, 32, 32])
        '3×32×32'
    """
    return "×".join(map(str, shape))


def _setting(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


TEXT = Kind("text", str, is_left=True)
SETTING = Kind("setting", _setting)  # as a recipe has it: ε, slack, seed, epochs
COUNT = Kind("count", "{:,}".format)
PERCENT = Kind("percentage", "{:.1f}".format, 100.0)  # of a fraction
EXACT_PERCENT = Kind("exact percentage", "{:.2f}".format, 100.0)  # of one certified split
TIGHTNESS = Kind("tightness", "{:.0f}".format, 100.0)
CONSTANT = Kind("constant", "{:.1f}".format)
EXACT_CONSTANT = Kind("exact constant", "{:.6g}".format)
LOWER_BOUND = Kind("lower bound", from_below)
SECONDS = Kind("seconds", "{:.0f}".format)
FINE_SECONDS = Kind("fine seconds", "{:.2f}".format)  # of one proof
RADIUS = Kind("radius", printed_radius)  # at which accuracy is certified
PROVED_RADIUS = Kind("proved radius", proved_radius)  # of one sample


def percent(fraction: float) -> str:
    """Write a fraction as a percentage within a sentence.

    Example:
        >>> percent(0.7761)
        '77.6 %'
    """
    return f"{PERCENT.text(fraction)} %"
