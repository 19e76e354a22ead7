"""What counts as a claim that holds: differences beyond the spread of the seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from lipcert.paper.claims import (
    Check,
    ahead,
    beats,
    best_at,
    better_at,
    by_slack,
    compared,
    constant,
    falls,
    falls_outside,
    gains_more,
    improves,
    insensitive,
    no_better,
    peaks,
    scale_sets_khf,
    seeds_agree,
    similar,
    steadier,
    trades,
    trades_everywhere,
)
from lipcert.paper.outcome import Outcome
from lipcert.paper.parameter_figures import CONVERGENCE, FIXED
from lipcert.paper.verdict import Word
from lipcert.runs.measures import K_F, K_HF, TIGHTNESS
from lipcert.runs.measures import clean as clean_of
from lipcert.runs.measures import cra as cra_of
from lipcert.tables.kinds import CONSTANT, PERCENT, Range
from tests.outcomes import outcome

CLEAN, CRA = clean_of("test"), cra_of("test", 36 / 255)


def rows_of(column: str, points: Mapping[float, Sequence[float]], series: str = "") -> list[Outcome]:
    """Outcomes with the values of the seeds at every x."""
    values = [(x, value) for x, found in points.items() for value in found]
    return [outcome(series, x, **{column: value}) for x, value in values]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("theirs", "word"),
    [
        ({1: (0.4, 0.45), 2: (0.3, 0.31)}, Word.HOLDS),
        ({1: (0.4, 0.52), 2: (0.3, 0.31)}, Word.LEVEL),  # one seed is above one of ours
        ({1: (0.4, 0.45), 2: (0.5, 0.51)}, Word.FAILS),
    ],
)
def test_ahead_at_every_place_and_beyond_the_seeds(
    theirs: dict[float, tuple[float, float]], word: Word
) -> None:
    mine = rows_of("cra", {1: (0.5, 0.55), 2: (0.35, 0.36)}, "CLL")
    verdict = ahead(CRA, "CLL", "GloRo")([*mine, *rows_of("cra", theirs, "GloRo")])
    assert verdict.word is word


def test_nothing_measured_decides_nothing() -> None:
    check = ahead(TIGHTNESS, "CLL", "GloRo")
    assert check([]).word is Word.NOT_RUN
    only = rows_of("tightness", {1: (0.5,)}, "CLL")
    assert check([*only, *rows_of("tightness", {2: (0.4,)}, "GloRo")]).word is Word.NOT_RUN


@pytest.mark.parametrize(
    ("clean", "cra", "word"),
    [
        ({1: (0.8, 0.81), 2: (0.7, 0.71)}, {1: (0.5, 0.51), 2: (0.6, 0.61)}, Word.HOLDS),
        ({1: (0.8, 0.81), 2: (0.7, 0.71)}, {1: (0.5, 0.51), 2: (0.4, 0.41)}, Word.FAILS),
        ({1: (0.8, 0.81), 2: (0.7, 0.80)}, {1: (0.5, 0.51), 2: (0.6, 0.61)}, Word.LEVEL),
    ],
)
def test_a_trade_needs_a_fall_and_a_rise(
    clean: dict[float, tuple[float, ...]], cra: dict[float, tuple[float, ...]], word: Word
) -> None:
    rows = [
        outcome(x=x, clean=one, cra=other) for x in clean for one, other in zip(clean[x], cra[x], strict=True)
    ]
    verdict = trades(CLEAN, CRA)(rows)
    assert verdict.word is word


def test_flat_within_a_range_and_lower_beyond_it() -> None:
    arch = rows_of("cra", {1: (0.2,), 2: (0.50,), 3: (0.51,), 4: (0.3,)})
    flat = rows_of("cra", {1: (0.5,), 2: (0.50,), 3: (0.51,), 4: (0.3,)})
    assert insensitive(CRA, 2, 3, points=2.0)(arch).word is Word.HOLDS
    assert insensitive(CRA, 1, 3, points=2.0)(arch).word is Word.FAILS
    assert falls_outside(CRA, 2, 3)(arch).word is Word.HOLDS
    assert falls_outside(CRA, 2, 3)(flat).word is Word.LEVEL  # as low as the least between
    assert "from 1 to 4" in insensitive(CRA, 0, float("inf"), points=2.0)(flat).found


def test_constant_up_to_a_factor() -> None:
    rows = rows_of("k_hf", {1: (10.0, 11.0), 2: (12.0, 12.0)})
    assert constant(K_HF, factor=1.25)(rows).word is Word.HOLDS
    assert constant(K_HF, factor=1.1)(rows).word is Word.FAILS


def test_the_scale_is_judged_by_the_estimate_of_training() -> None:
    row = outcome(k_f=10.0, k_f_in_training=9.8)
    rival = outcome(loss="gloro", k_f=10.0, k_f_in_training=1.0)
    assert scale_sets_khf([row, rival]).agrees
    assert not scale_sets_khf([row, outcome(k_f=10.0, k_f_in_training=9.0)]).agrees


def test_convergence_is_judged_by_the_first_half_and_noise_by_falls() -> None:
    faster, less_noisy = (claim.check for claim in CONVERGENCE.claims)

    def rows(cll: list[float], gloro: list[float]) -> list[Outcome]:
        return [
            outcome("CLL", cra_by_epoch=tuple(cll)),
            outcome(FIXED, cra_by_epoch=tuple(gloro)),
            outcome("GloRo, ε growing", cra_by_epoch=(0.0, 0.0)),  # a variant decides nothing
        ]

    assert faster(rows([0.4, 0.1], [0.3, 0.5])).said == Word.HOLDS
    assert faster(rows([0.2, 0.9], [0.3, 0.5])).said == Word.FAILS
    assert faster(rows([0.4], [0.3])).said == Word.NOT_RUN
    assert faster(rows([0.4, 0.5], [0.3, 0.5])[:1]).said == Word.NOT_RUN
    assert less_noisy(rows([0.2, 0.3, 0.4], [0.2, 0.1, 0.6])).said == Word.HOLDS
    assert less_noisy(rows([0.2, 0.1, 0.4], [0.2, 0.3, 0.6])).said == Word.FAILS


def test_one_seed_decides_no_difference_of_a_point_or_less() -> None:
    def word(mine: float, theirs: float) -> Word:
        return compared({"a": (Range((mine,)), Range((theirs,)))}, PERCENT, "").word

    assert word(0.51, 0.505) is Word.LEVEL
    assert word(0.52, 0.505) is Word.HOLDS
    assert word(0.48, 0.505) is Word.FAILS
    assert compared({"a": (Range((2.0,)), Range((1.9,)))}, CONSTANT, "").word is Word.HOLDS  # no accuracy


def test_one_seed_on_one_side_is_enough_for_the_rule() -> None:
    nine = Range((0.50, 0.51))
    assert compared({"a": (Range((0.515,)), nine)}, PERCENT, "").word is Word.LEVEL
    assert compared({"a": (Range((0.525,)), nine)}, PERCENT, "").word is Word.HOLDS


def test_a_place_beats_another_if_it_is_behind_in_nothing() -> None:
    def word(clean: float, cra: float) -> Word:
        rows = [outcome("p = 0.1", 1.0, clean=0.8, cra=0.5, seed=seed) for seed in (1, 2)] + [
            outcome("p = 0.2", 2.0, clean=clean, cra=cra, seed=seed) for seed in (1, 2)
        ]
        return beats((CLEAN, CRA), ("p = 0.2", 2.0), ("p = 0.1", 1.0))(rows).word

    assert word(0.81, 0.5) is Word.HOLDS
    assert word(0.81, 0.49) is Word.FAILS
    assert word(0.8, 0.5) is Word.LEVEL
    assert beats((CLEAN,), ("a", 1.0), ("b", 1.0))([]).word is Word.NOT_RUN


def test_tolerances_are_said() -> None:
    rows = [*rows_of("k_f", {1: (10.0,), 2: (8.0,)}, "CLL"), *rows_of("k_f", {1: (9.0,), 2: (2.0,)}, "GloRo")]
    assert "any smaller factor counts" in steadier(K_F, "CLL", "GloRo")(rows).found
    flat = rows_of("cra", {1: (0.5,), 2: (0.51,)})
    assert "(2 points allowed)" in insensitive(CRA, 0, 9, points=2.0)(flat).found
    assert "(1.25-fold allowed)" in constant(K_HF, factor=1.25)(flat).found


def test_a_part_that_fails_decides_and_a_rival_that_is_missing_leaves_nothing() -> None:
    rows = [outcome(recipe=name, cra=cra) for name, cra in (("a", 0.5), ("b", 0.4), ("c", 0.3), ("d", 0.6))]
    assert improves(CRA, {"a": "b"})(rows).word is Word.HOLDS
    verdict = improves(CRA, {"a": "b", "c": "d"})(rows)
    assert verdict.word is Word.FAILS
    assert "a +10.0, c −30.0" in verdict.found
    assert improves(CRA, {"a": "b", "c": "e"})(rows).word is Word.NOT_RUN


def test_peaks_and_best_places() -> None:
    arch = rows_of("cra", {1: (0.4, 0.41), 2: (0.5, 0.51), 3: (0.45, 0.46)}, "SOC")
    assert peaks(CRA, "SOC")(arch).word is Word.HOLDS
    assert best_at(CRA, 2, "SOC")(arch).word is Word.HOLDS
    assert best_at(CRA, 3, "SOC")(arch).word is Word.FAILS
    assert best_at(CRA, 4, "SOC")(arch).word is Word.NOT_RUN
    rising = rows_of("cra", {1: (0.4, 0.41), 2: (0.5, 0.51), 3: (0.55, 0.56)})
    assert peaks(CRA)(rising).word is Word.FAILS


def test_steadier_and_agreeing_seeds() -> None:
    mine = rows_of("k_f", {1: (10.0,), 2: (8.0,)}, "CLL")
    theirs = rows_of("k_f", {1: (10.0,), 2: (2.0,)}, "GloRo")
    assert steadier(K_F, "CLL", "GloRo")([*mine, *theirs]).word is Word.HOLDS
    assert steadier(K_F, "GloRo", "CLL")([*mine, *theirs]).word is Word.FAILS
    seeds = [outcome(cra=cra, seed=seed) for seed, cra in enumerate((0.5, 0.51, 0.52))]
    assert seeds_agree(CRA, points=1.1)(seeds).word is Word.HOLDS
    assert seeds_agree(CRA, points=0.9)(seeds).word is Word.FAILS
    assert seeds_agree(CRA, points=0.9)(seeds[:1]).word is Word.NOT_RUN


def test_a_trade_in_every_series() -> None:
    def rows(series: str, cra: float) -> list[Outcome]:
        return [outcome(series, 1, clean=0.8, cra=0.3), outcome(series, 2, clean=0.7, cra=cra)]

    assert trades_everywhere(CLEAN, CRA)([*rows("a", 0.4), *rows("b", 0.5)]).word is Word.HOLDS
    assert trades_everywhere(CLEAN, CRA)([*rows("a", 0.4), *rows("b", 0.2)]).word is Word.FAILS
    assert trades_everywhere(CLEAN, CRA)([]).word is Word.NOT_RUN


@pytest.mark.parametrize(
    "check",
    [
        trades(CLEAN, CRA),
        peaks(CRA),
        best_at(CRA, 1, ""),
        ahead(CRA, "CLL", "GloRo"),
        steadier(K_F, "CLL", "GloRo"),
        insensitive(CRA, 0, 1, points=1.0),
        falls_outside(CRA, 0, 1),
        constant(K_F, factor=2.0),
        seeds_agree(CRA, points=1.0),
    ],
)
def test_without_rows_nothing_was_run(check: Check) -> None:
    assert check([]).word is Word.NOT_RUN


def paired(column: str, **found: Sequence[float]) -> list[Outcome]:
    """Outcomes of recipes, one per seed."""
    return [
        outcome(recipe=recipe, seed=i, **{column: value})  # type: ignore[arg-type]
        for recipe, values in found.items()
        for i, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("ours", "word"), [((0.5, 0.51), Word.HOLDS), ((0.4, 0.41), Word.HOLDS), ((0.6, 0.61), Word.FAILS)]
)
def test_no_better_is_level_or_behind(ours: tuple[float, float], word: Word) -> None:
    rows = paired("cra", mine=ours, rival=(0.5, 0.52))
    assert no_better((CRA,), {"mine": "rival"})(rows).word is word
    assert no_better((CRA, TIGHTNESS), {"mine": "rival"})(rows).word is Word.NOT_RUN


@pytest.mark.parametrize(("hard", "word"), [(0.55, Word.HOLDS), (0.595, Word.LEVEL), (0.8, Word.FAILS)])
def test_gains_of_one_group_are_compared_with_those_of_another(hard: float, word: Word) -> None:
    rows = paired("tightness", soft=(0.6,), hard=(hard,), rival=(0.5,))
    verdict = gains_more(TIGHTNESS, {"soft": "rival"}, {"hard": "rival"})(rows)
    assert verdict.word is word
    assert "+10.0 against" in verdict.found
    assert gains_more(TIGHTNESS, {"soft": "rival"}, {"none": "rival"})(rows).word is Word.NOT_RUN


@pytest.mark.parametrize(("ours", "word"), [(6.5, Word.HOLDS), (4.7, Word.FAILS), (7.6, Word.FAILS)])
def test_similar_constants_are_within_a_factor(ours: float, word: Word) -> None:
    rows = paired("k_hf", mine=(ours,), rival=(6.0,))
    assert similar(K_HF, {"mine": "rival"}, factor=1.25)(rows).word is word
    assert similar(K_HF, {"mine": "none"}, factor=1.25)(rows).word is Word.NOT_RUN


def test_one_place_is_compared_with_another() -> None:
    rows = rows_of("cra", {0.15: (0.50, 0.51), 0.2: (0.52, 0.53), 0.25: (0.5, 0.54)})
    assert better_at(CRA, 0.2, 0.15)(rows).word is Word.HOLDS
    assert better_at(CRA, 0.15, 0.2)(rows).word is Word.FAILS
    assert better_at(CRA, 0.25, 0.2)(rows).word is Word.LEVEL
    assert better_at(CRA, 0.3, 0.2)(rows).word is Word.NOT_RUN


def test_a_constant_falls_from_place_to_place() -> None:
    steep = {1: (40.0, 41.0), 2: (20.0, 21.0), 3: (10.0, 11.0)}
    assert falls(K_F)(rows_of("k_f", steep)).word is Word.HOLDS
    assert falls(K_F)(rows_of("k_f", {**steep, 2: (20.0, 50.0)})).word is Word.LEVEL
    assert falls(K_F)(rows_of("k_f", {**steep, 3: (30.0, 31.0)})).word is Word.FAILS
    assert falls(K_F)(rows_of("k_f", {1: (1.0,)})).word is Word.NOT_RUN


def test_rows_over_eps_can_be_read_over_the_slack() -> None:
    def row(slack: float, eps: float, clean: float, cra: float) -> Outcome:
        found = outcome(f"p = {slack:g}", eps, clean=clean, cra=cra)
        return replace(found, run=replace(found.run, slack=slack))

    rows = [
        row(0.1, 0.5, 0.8, 0.4),
        row(0.2, 0.5, 0.7, 0.5),
        row(0.1, 1.0, 0.7, 0.5),
        row(0.2, 1.0, 0.6, 0.6),
    ]
    verdict = by_slack(trades_everywhere(CLEAN, CRA))(rows)
    assert verdict.word is Word.HOLDS
    assert verdict.found.startswith("ε = 0.5: test clean 80.0 % → 70.0 %")
    assert "ε = 1: test clean 70.0 % → 60.0 %" in verdict.found
