"""The claims on two moons: what counts, with seeds that agree, mingle or are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from lipcert.data.moons import moons
from lipcert.paper import moons_claims as claims
from lipcert.paper.outcome import Outcome
from lipcert.paper.verdict import Word
from lipcert.runs.rows import SplitRow
from lipcert.tables.kinds import Interval
from tests.outcomes import outcome


def row(
    loss: str,
    train: float = 1.0,
    val: float = 0.9,
    *,
    eps: float = 0.15,
    slack: float | None = None,
    clean: float = 1.0,
    k_f: float = 10.0,
    k_hf: float = 10.0,
) -> Outcome:
    """A training, certified at ε on both splits."""
    made = outcome(loss=loss, k_f=k_f, k_hf=k_hf)
    splits = {
        "train": SplitRow(2000, clean, {eps: train}, Interval(0.0, 1.0)),
        "val": SplitRow(20000, clean, {eps: val}, Interval(0.0, 1.0)),
    }
    return replace(made, run=replace(made.run, splits=splits, slack=slack))


def seeds(loss: str, values: Sequence[float], eps: float = 0.15) -> list[Outcome]:
    return [row(loss, value, eps=eps) for value in values]


def test_every_point_with_every_seed() -> None:
    assert claims.reaches_every_point(seeds("cll", (1.0, 1.0))).word is Word.HOLDS
    assert claims.reaches_every_point(seeds("cll", (1.0, 0.999))).word is Word.FAILS
    assert claims.reaches_every_point(seeds("gloro", (1.0,))).word is Word.NOT_RUN
    assert claims.gloro_loses_points(seeds("gloro", (0.99, 0.98))).word is Word.HOLDS
    assert claims.gloro_loses_points(seeds("gloro", (0.99, 1.0))).word is Word.LEVEL
    assert claims.gloro_loses_points(seeds("gloro", (1.0, 1.0))).word is Word.FAILS


def test_only_margins_beyond_the_true_one_count() -> None:
    within = [*seeds("cll", (0.5, 0.5)), *seeds("gloro", (1.0, 1.0))]
    beyond = [*seeds("cll", (0.9, 0.91), 0.2), *seeds("gloro", (0.8, 0.81), 0.2)]
    assert claims.retains_beyond([*within, *beyond]).word is Word.HOLDS
    assert claims.retains_beyond(within).word is Word.NOT_RUN
    assert claims.retains_beyond([*beyond, *seeds("cll", (0.9,), 0.25)]).word is Word.NOT_RUN


def test_constants_are_compared_at_every_margin() -> None:
    def rows(theirs: float) -> list[Outcome]:
        first = [row("cll", k_hf=20.0, k_f=1.0), row("gloro", k_hf=10.0, k_f=10.0)]
        return [*first, row("cll", eps=0.2, k_hf=20.0), row("gloro", eps=0.2, k_hf=theirs)]

    assert claims.gloro_is_smoother(rows(15.0)).word is Word.HOLDS
    assert claims.gloro_is_smoother(rows(25.0)).word is Word.FAILS
    apart = claims.outputs_are_farther_apart(rows(15.0))
    assert apart.word is Word.FAILS
    assert apart.found.endswith("CLL 0.1, GloRo 1.5")


def test_cross_entropy_needs_a_larger_constant_and_fewer_points() -> None:
    others = [row("cll", 1.0, k_f=5.0), row("gloro", 0.9, k_f=10.0)]
    check = claims.cross_entropy_has_no_margin
    assert check([*others, row("cross-entropy", 0.0, k_f=100.0)]).word is Word.HOLDS
    assert check([*others, row("cross-entropy", 0.0, k_f=1.0)]).word is Word.FAILS
    assert check([*others, row("cross-entropy", 0.95, k_f=100.0)]).word is Word.FAILS
    assert check(others).word is Word.NOT_RUN


def test_a_larger_constant_improves_both_accuracies() -> None:
    small = row("cll", val=0.8, clean=0.9, k_hf=3.0)
    assert claims.larger_constant_is_better([small, row("cll", val=0.9, k_hf=100.0)]).word is Word.HOLDS
    assert claims.larger_constant_is_better([small, row("cll", val=0.7, k_hf=100.0)]).word is Word.FAILS
    assert claims.larger_constant_is_better([small]).word is Word.NOT_RUN


def test_slack_by_steps() -> None:
    rows = [row("cll", train, slack=p) for p, train in ((0.3, 0.8), (0.1, 0.9), (0.01, 0.95))]
    close = [*rows, row("cll", 0.955, slack=0.001)]  # half a point, one seed
    assert claims.less_slack_certifies_more(close).word is Word.LEVEL
    assert claims.less_slack_certifies_more(2 * close).word is Word.HOLDS  # two seeds that agree
    short = [*rows, row("cll", 0.9995, slack=0.001)]
    assert claims.least_slack_is_imperfect(short).word is Word.LEVEL
    assert claims.least_slack_is_imperfect(2 * short).word is Word.HOLDS
    assert claims.less_slack_certifies_more(rows).word is Word.HOLDS
    assert claims.less_slack_certifies_more([*rows, row("cll", 0.5, slack=0.001)]).word is Word.FAILS
    assert claims.least_slack_is_imperfect(rows).word is Word.HOLDS
    assert claims.least_slack_is_imperfect([*rows, row("cll", 1.0, slack=0.001)]).word is Word.FAILS


def test_one_slack_resembles_gloro() -> None:
    gloro = seeds("gloro", (1.0, 0.999))
    check = claims.resembles_gloro(0.125)
    assert check([*gloro, row("cll", 0.995, slack=0.125)]).word is Word.HOLDS
    assert check([*gloro, row("cll", 0.98, slack=0.125)]).word is Word.FAILS
    assert check([*gloro, row("cll", 0.995, slack=0.3)]).word is Word.NOT_RUN


def test_a_network_that_classifies_more_than_a_line_is_not_linear() -> None:
    within = row("gloro", clean=1.0)
    check = claims.gloro_becomes_linear
    assert check([within, row("gloro", eps=0.25, clean=0.88)]).word is Word.HOLDS
    assert check([within, row("gloro", eps=0.25, clean=0.95)]).word is Word.FAILS
    assert check([within]).word is Word.NOT_RUN
    assert check([]).word is Word.NOT_RUN


def test_a_straight_line_classifies_about_so_many_points() -> None:
    data = moons()
    angles = torch.linspace(0, 2 * torch.pi, 721)
    places = data.x @ torch.stack([angles.cos(), angles.sin()])  # (points, angles)
    order = places.argsort(dim=0)
    ones = data.y[order].cumsum(dim=0)  # points of class 1, up to each cut
    zeros = torch.arange(1, len(data.y) + 1)[:, None] - ones
    best = float((zeros + data.y.sum() - ones).max()) / len(data.y)
    assert claims.STRAIGHT - 0.005 < best <= claims.STRAIGHT


def test_rivals_are_all_but_cll() -> None:
    rows = [row("cll", 1.0, k_hf=184.0), row("certificate-regularisation", 0.85, k_hf=2.0)]
    assert claims.no_rival_reaches(0.9)(rows).word is Word.HOLDS
    assert claims.no_rival_reaches(0.8)(rows).word is Word.FAILS
    assert claims.constants_are(2.0)(rows).word is Word.HOLDS
    assert claims.constants_are(2.0)([*rows, row("gloro", k_hf=0.02)]).word is Word.FAILS
    assert claims.no_rival_reaches(0.9)(rows[:1]).word is Word.NOT_RUN
