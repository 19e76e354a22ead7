"""How numbers are printed, kind by kind."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from lipcert.tables import kinds
from lipcert.tables.kinds import Deviation, Interval, Kind, Range, Value

WRITTEN: list[tuple[Kind, Value, str]] = [
    (kinds.PERCENT, 0.7761, "77.6"),
    (kinds.PERCENT, 1, "100.0"),
    (kinds.PERCENT, Deviation(0.5, 0.0004), "50.00 ± 0.04"),
    (kinds.PERCENT, Deviation(0.5, 0.0), "50.0 ± 0.0"),
    (kinds.PERCENT, Range((0.1, 0.3, 0.2)), "20.0 (10.0 … 30.0)"),
    (kinds.PERCENT, Range((0.3, 0.1)), "20.0 (30.0 and 10.0)"),
    (kinds.EXACT_PERCENT, 0.77614, "77.61"),
    (kinds.EXACT_PERCENT, Interval(0.5, 0.625), "50.00 … 62.50"),
    (kinds.TIGHTNESS, 0.876, "88"),
    (kinds.TIGHTNESS, Deviation(0.876, None), "87.6"),
    (kinds.CONSTANT, 72.06, "72.1"),
    (kinds.CONSTANT, Deviation(72.0, 0.04), "72.0 ± 0.0"),
    (kinds.EXACT_CONSTANT, 72.0612345, "72.0612"),
    (kinds.LOWER_BOUND, 0.9999999, "0.999999"),
    (kinds.UPPER_BOUND, 52.3438339, "52.3439"),
    (kinds.UPPER_BOUND, 1.0, "1"),
    (kinds.UPPER_BOUND, 12345678.0, "1.23457e+07"),
    (kinds.UPPER_BOUND, math.inf, "inf"),
    (kinds.SETTING, 0.15, "0.15"),
    (kinds.SETTING, 12345678, "12345678"),
    (kinds.SETTING, "cll", "cll"),
    (kinds.COUNT, 2466858, "2,466,858"),
    (kinds.SECONDS, 61.6, "62"),
    (kinds.RADIUS, 36 / 255, "36/255"),
    (kinds.RADIUS, 0.0, "0"),
    (kinds.PROVED_RADIUS, 0.45359, "0.4535"),
    (kinds.POINTS, 1.25, "1.2"),
    (kinds.FINE_POINTS, 0.456, "0.46"),
    (kinds.SIGNED, 1.26, "+1.3"),
    (kinds.SIGNED, -0.4, "−0.4"),
    (kinds.FOLD, 2.46, "2.5-fold"),
    (kinds.FINE_FOLD, 2.456, "2.46-fold"),
    (kinds.GROUPED_CONSTANT, 20123.45, "20,123.5"),
    (kinds.WHOLE_CONSTANT, 20123.4, "20,123"),
    (kinds.DISTANCE, 0.12345, "0.1235"),
    (kinds.TEXT, None, "–"),
]


@pytest.mark.parametrize(("kind", "value", "text"), WRITTEN, ids=lambda v: getattr(v, "name", str(v)))
def test_every_kind_has_one_format(kind: Kind, value: Value, text: str) -> None:
    assert kind.text(value) == text


@pytest.mark.parametrize("value", [0.1, 0.3, 1 / 3, 2.2, 0.45359, 52.3438339, 1e-7 / 3, 123456.5, 1 - 2**-53])
def test_proved_numbers_are_printed_on_the_safe_side(value: float) -> None:
    assert Fraction(kinds.UPPER_BOUND.text(value)) >= Fraction(value)
    assert Fraction(kinds.LOWER_BOUND.text(value)) <= Fraction(value)
    assert Fraction(kinds.PROVED_RADIUS.text(value)) <= Fraction(value)
    for kind in (kinds.UPPER_BOUND, kinds.LOWER_BOUND):
        assert float(kind.text(value)) == pytest.approx(value, rel=2e-5)  # not far on it, either


def test_statistics_sum_up_several_values() -> None:
    assert Deviation.of([1.0, 3.0]) == Deviation(2.0, 2**0.5)
    assert Deviation.of([1.0]) == Deviation(1.0, None)
    found = Range.of([2.0, 1.0, 6.0])
    assert (found.least, found.mean, found.most) == (1.0, 3.0, 6.0)


@pytest.mark.parametrize("radius", [36 / 255, 0.15, 51 / 255, 1.0, 0.5])
def test_a_printed_radius_can_be_read_again(radius: float) -> None:
    assert kinds.parsed_radius(kinds.printed_radius(radius)) == radius
