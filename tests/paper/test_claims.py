"""What counts as a claim that holds: differences beyond the spread of the seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from lipcert.paper.claims import (
    ahead,
    constant,
    falls_outside,
    insensitive,
    scale_sets_khf,
    trades,
)
from lipcert.paper.outcome import Outcome
from lipcert.paper.parameter_figures import CONVERGENCE
from lipcert.runs.measures import K_HF, TIGHTNESS
from lipcert.runs.measures import clean as clean_of
from lipcert.runs.measures import cra as cra_of
from tests.outcomes import outcome

CLEAN, CRA = clean_of("test"), cra_of("test", 36 / 255)


def rows_of(column: str, points: Mapping[float, Sequence[float]], series: str = "") -> list[Outcome]:
    """Outcomes with the values of the seeds at every x."""
    values = [(x, value) for x, found in points.items() for value in found]
    return [outcome(series, x, **{column: value}) for x, value in values]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("theirs", "holds"),
    [
        ({1: (0.4, 0.45), 2: (0.3, 0.31)}, True),
        ({1: (0.4, 0.52), 2: (0.3, 0.31)}, None),  # one seed is above one of ours
        ({1: (0.4, 0.45), 2: (0.5, 0.51)}, False),
    ],
)
def test_ahead_at_every_place_and_beyond_the_seeds(
    theirs: dict[float, tuple[float, float]], holds: bool | None
) -> None:
    mine = rows_of("cra", {1: (0.5, 0.55), 2: (0.35, 0.36)}, "CLL")
    verdict = ahead(CRA, "CLL", "GloRo")([*mine, *rows_of("cra", theirs, "GloRo")])
    assert verdict.holds is holds


def test_nothing_measured_decides_nothing() -> None:
    check = ahead(TIGHTNESS, "CLL", "GloRo")
    assert check([]).holds is None
    only = rows_of("tightness", {1: (0.5,)}, "CLL")
    assert check([*only, *rows_of("tightness", {2: (0.4,)}, "GloRo")]).holds is None


@pytest.mark.parametrize(
    ("clean", "cra", "holds"),
    [
        ({1: (0.8, 0.81), 2: (0.7, 0.71)}, {1: (0.5, 0.51), 2: (0.6, 0.61)}, True),
        ({1: (0.8, 0.81), 2: (0.7, 0.71)}, {1: (0.5, 0.51), 2: (0.4, 0.41)}, False),
        ({1: (0.8, 0.81), 2: (0.7, 0.80)}, {1: (0.5, 0.51), 2: (0.6, 0.61)}, None),
    ],
)
def test_a_trade_needs_a_fall_and_a_rise(
    clean: dict[float, tuple[float, ...]], cra: dict[float, tuple[float, ...]], holds: bool | None
) -> None:
    rows = [
        outcome(x=x, clean=one, cra=other) for x in clean for one, other in zip(clean[x], cra[x], strict=True)
    ]
    verdict = trades(CLEAN, CRA)(rows)
    assert verdict.holds is holds


def test_flat_within_a_range_and_lower_beyond_it() -> None:
    arch = rows_of("cra", {1: (0.2,), 2: (0.50,), 3: (0.51,), 4: (0.3,)})
    flat = rows_of("cra", {1: (0.5,), 2: (0.50,), 3: (0.51,), 4: (0.3,)})
    assert insensitive(CRA, 2, 3, points=2.0)(arch).holds is True
    assert insensitive(CRA, 1, 3, points=2.0)(arch).holds is False
    assert falls_outside(CRA, 2, 3)(arch).holds is True
    assert falls_outside(CRA, 2, 3)(flat).holds is None  # as low as the least between
    assert "from 1 to 4" in insensitive(CRA, 0, float("inf"), points=2.0)(flat).found


def test_constant_up_to_a_factor() -> None:
    rows = rows_of("k_hf", {1: (10.0, 11.0), 2: (12.0, 12.0)})
    assert constant(K_HF, factor=1.25)(rows).holds is True
    assert constant(K_HF, factor=1.1)(rows).holds is False


def test_the_scale_is_judged_by_the_estimate_of_training() -> None:
    row = outcome(k_f=10.0, k_f_in_training=9.8)
    rival = outcome(loss="gloro", k_f=10.0, k_f_in_training=1.0)
    assert scale_sets_khf([row, rival]).holds is True
    assert scale_sets_khf([row, outcome(k_f=10.0, k_f_in_training=9.0)]).holds is False


def test_convergence_is_judged_by_the_first_half() -> None:
    check = CONVERGENCE.claims[0].check  # against GloRo with a fixed ε

    def rows(cll: list[float], gloro: list[float]) -> list[Outcome]:
        return [
            outcome("CLL", cra_by_epoch=tuple(cll)),
            outcome("GloRo", cra_by_epoch=tuple(gloro)),
        ]

    assert check(rows([0.4, 0.1], [0.3, 0.5])).holds is True
    assert check(rows([0.2, 0.9], [0.3, 0.5])).holds is False
    assert check(rows([0.4], [0.3])).holds is None
