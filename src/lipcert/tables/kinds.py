"""Kinds of values, and the one format of each: this file decides how every number is printed.

A column says its kind. Nothing is guessed from a title, and no other module formats a number of a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
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
    """Several values, shown as their mean with both of two, or with the least and the most of more."""

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
                return self._range([self.scale * one for one in values])
            case Interval(low, high):
                return f"{self.text(low)} … {self.text(high)}"
            case int() | float():
                return self.number(value if self.scale == 1 else self.scale * value)

    def _range(self, shown: Sequence[float]) -> str:
        if len(shown) == 2:
            return f"{fmean(shown):.1f} ({shown[0]:.1f} and {shown[1]:.1f})"
        return f"{fmean(shown):.1f} ({min(shown):.1f} … {max(shown):.1f})"

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
    """Read what `printed_radius` writes: a number or a fraction; raises `ValueError` for anything else.

    Example:
        >>> parsed_radius("36/255") == 36 / 255, parsed_radius("0.15")
        (True, 0.15)
    """
    above, slash, below = text.partition("/")
    try:
        return float(above) / float(below) if slash else float(text)
    except (ValueError, ZeroDivisionError):
        raise ValueError("expected a number such as 0.15 or a fraction such as 36/255") from None


def proved_radius(radius: float) -> str:
    """Write a certified radius with four decimals, never more than it is.

    Example:
        >>> proved_radius(0.45356), proved_radius(math.inf)
        ('0.4535', '∞')
    """
    if not math.isfinite(radius):
        return "∞"
    return str(Decimal(radius).quantize(Decimal("0.0001"), rounding=ROUND_FLOOR))


_DOWN, _UP = Context(prec=6, rounding=ROUND_FLOOR), Context(prec=6, rounding=ROUND_CEILING)


def from_below(value: float) -> str:
    """Write a lower bound with six digits that are not above it.

    Example:
        >>> from_below(0.9999999), from_below(2.0)
        ('0.999999', '2')
    """
    return f"{float(_DOWN.create_decimal_from_float(value)):.6g}"


def from_above(value: float) -> str:
    """Write a proved upper bound with six digits that are not below it.

    Example:
        >>> from_above(2.2503612), from_above(2.0)
        ('2.25037', '2')
    """
    return f"{float(_UP.create_decimal_from_float(value)):.6g}"


def shape_text(shape: Sequence[int]) -> str:
    """Write a shape.

    Example:
        >>> shape_text([3, 32, 32])
        '3×32×32'
    """
    return "×".join(map(str, shape))


def duration(seconds: float) -> str:
    """Write a time; beyond ten minutes, hours and minutes are easier to read than seconds.

    Example:
        >>> duration(12.04), duration(3661.0)
        ('12.0 s', '1:01:01')
    """
    return f"{seconds:.1f} s" if seconds < 600 else str(timedelta(seconds=round(seconds)))


def rough_duration(seconds: float) -> str:
    """Write how long a whole training took.

    Example:
        >>> rough_duration(1234.0), rough_duration(9000.0)
        ('21 min', '2.5 h')
    """
    minutes = seconds / 60
    return f"{minutes / 60:.1f} h" if minutes >= 100 else f"{minutes:.0f} min"


def _setting(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def _signed(number: float) -> str:
    return f"{number:+.1f}".replace("-", "−")


TEXT = Kind("text", str, is_left=True)
SETTING = Kind("setting", _setting)  # as a recipe has it: ε, slack, seed, epochs
COUNT = Kind("count", "{:,}".format)
PERCENT = Kind("percentage", "{:.1f}".format, 100.0)  # takes a fraction
EXACT_PERCENT = Kind("exact percentage", "{:.2f}".format, 100.0)  # for one certified split
WHOLE_PERCENT = Kind("whole percentage", "{:.0f}".format, 100.0)  # where there is little room
TIGHTNESS = Kind("tightness", "{:.0f}".format, 100.0)
CONSTANT = Kind("constant", "{:.1f}".format)
EXACT_CONSTANT = Kind("exact constant", "{:.6g}".format)
GROUPED_CONSTANT = Kind("grouped constant", "{:,.1f}".format)  # one that may be large
WHOLE_CONSTANT = Kind("whole constant", "{:,.0f}".format)  # one that no certificate is made with
LOWER_BOUND = Kind("lower bound", from_below)
UPPER_BOUND = Kind("upper bound", from_above)
POINTS = Kind("points", "{:.1f}".format)  # percentage points, which are percentages already
FINE_POINTS = Kind("fine points", "{:.2f}".format)
SIGNED = Kind("signed difference", _signed)
FOLD = Kind("factor", "{:.1f}-fold".format)
FINE_FOLD = Kind("fine factor", "{:.2f}-fold".format)
DISTANCE = Kind("distance", "{:.4f}".format)  # between an input and an attacked one
DEVIATION = Kind("deviation", "{:.1e}".format)  # between two devices
SHARE = Kind("share", "{:.2g}".format)  # what is used of what is allowed
LOSS = Kind("loss", "{:.3f}".format)
HOURS = Kind("hours", "{:,.0f}".format)  # on somebody's GPU
SECONDS = Kind("seconds", "{:.0f}".format)
FINE_SECONDS = Kind("fine seconds", "{:.2f}".format)  # for one proof
RADIUS = Kind("radius", printed_radius)  # at which accuracy is certified
PROVED_RADIUS = Kind("proved radius", proved_radius)  # for one sample


def percent(fraction: float) -> str:
    """Write a fraction as a percentage within a sentence; what is not all is never rounded to all.

    Example:
        >>> percent(0.7761), percent(0.9998), percent(1.0)
        ('77.6 %', '99.98 %', '100.0 %')
    """
    text = PERCENT.text(fraction)
    if fraction < 1 and text == PERCENT.text(1.0):
        text = EXACT_PERCENT.text(fraction)
    return f"{text} %"
