"""How numbers are printed, kind by kind."""

from __future__ import annotations

import pytest

from lipcert.tables import kinds
from lipcert.tables.kinds import Deviation, Interval, Kind, Range, Value

WRITTEN: list[tuple[Kind, Value, str]] = [
    (kinds.PERCENT, 0.7761, "77.6"),
    (kinds.PERCENT, 1, "100.0"),
    (kinds.PERCENT, Deviation(0.5, 0.0004), "50.00 ± 0.04"),
    (kinds.PERCENT, Deviation(0.5, 0.0), "50.0 ± 0.0"),
    (kinds.PERCENT, Range((0.1, 0.3, 0.2)), "20.0 (10.0 … 30.0)"),
    (kinds.EXACT_PERCENT, 0.77614, "77.61"),
    (kinds.EXACT_PERCENT, Interval(0.5, 0.625), "50.00 … 62.50"),
    (kinds.TIGHTNESS, 0.876, "88"),
    (kinds.TIGHTNESS, Deviation(0.876, None), "87.6"),
    (kinds.CONSTANT, 72.06, "72.1"),
    (kinds.CONSTANT, Deviation(72.0, 0.04), "72.0 ± 0.0"),
    (kinds.EXACT_CONSTANT, 72.0612345, "72.0612"),
    (kinds.LOWER_BOUND, 0.9999999, "0.999999"),
    (kinds.SETTING, 0.15, "0.15"),
    (kinds.SETTING, 12345678, "12345678"),
    (kinds.SETTING, "cll", "cll"),
    (kinds.COUNT, 2466858, "2,466,858"),
    (kinds.SECONDS, 61.6, "62"),
    (kinds.RADIUS, 36 / 255, "36/255"),
    (kinds.RADIUS, 0.0, "0"),
    (kinds.PROVED_RADIUS, 0.45359, "0.4535"),
    (kinds.TEXT, None, "–"),
]


@pytest.mark.parametrize(("kind", "value", "text"), WRITTEN, ids=lambda v: getattr(v, "name", str(v)))
def test_every_kind_has_one_format(kind: Kind, value: Value, text: str) -> None:
    assert kind.text(value) == text


def test_statistics_sum_up_several_values() -> None:
    assert Deviation.of([1.0, 3.0]) == Deviation(2.0, 2**0.5)
    assert Deviation.of([1.0]) == Deviation(1.0, None)
    found = Range.of([2.0, 1.0, 6.0])
    assert (found.least, found.mean, found.most) == (1.0, 3.0, 6.0)


@pytest.mark.parametrize("radius", [36 / 255, 0.15, 51 / 255, 1.0, 0.5])
def test_a_printed_radius_can_be_read_again(radius: float) -> None:
    assert kinds.parsed_radius(kinds.printed_radius(radius)) == radius
