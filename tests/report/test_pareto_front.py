"""Fronts of clean and certified accuracy, and the claim that is read off them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lipcert.paper.outcome import Outcome
from lipcert.paper.pareto import NEAR, OVER_SLACK, PARETO, RIVAL, _better, points_of
from lipcert.paper.verdict import Word
from lipcert.report.pareto_front import draw_fronts, front, height
from tests.outcomes import outcome


def row(series: str, x: float, clean: float, cra: float) -> Outcome:
    return outcome(series, x, clean=clean, cra=cra)


def rows(rival: float) -> list[Outcome]:
    """CLL's front is a straight line from (0.6, 0.5) to (0.7, 0.4); GloRo lies so much below it."""
    ours = [row(OVER_SLACK, 0.1, 0.7, 0.4), row(OVER_SLACK, 0.3, 0.6, 0.5), row(OVER_SLACK, 0.3, 0.6, 0.498)]
    return [*ours, row(RIVAL, 0.1, 0.66, 0.44 - rival), row(RIVAL, 0.2, 0.62, 0.48 - rival)]


def test_what_another_is_better_than_is_not_on_the_front() -> None:
    points = [(0.7, 0.4, "a"), (0.6, 0.5, "b"), (0.6, 0.49, "c"), (0.65, 0.39, "d"), (0.5, 0.5, "e")]
    assert [name for *_, name in front(points)] == ["b", "a"]
    assert height(points, 0.65) == pytest.approx(0.45)
    assert height(points, 0.59) is None
    assert height(points, 0.71) is None


@pytest.mark.parametrize(
    ("below", "word"),
    [(0.01, Word.HOLDS), (0.001, Word.LEVEL), (0.0, Word.LEVEL), (-0.01, Word.FAILS)],
)
def test_better_is_above_the_rival_by_more_than_seeds_differ(below: float, word: Word) -> None:
    verdict = _better(NEAR, rows(below))
    assert verdict.word is word
    assert "seeds differ by 0.2" in verdict.found


def test_a_claim_without_rivals_or_common_ground_is_not_run() -> None:
    assert _better(NEAR, rows(0.1)[:3]).word is Word.NOT_RUN
    assert _better(NEAR, [*rows(0.1)[:3], row(RIVAL, 0.1, 0.9, 0.1)]).word is Word.NOT_RUN


def test_all_trainings_are_drawn(tmp_path: Path) -> None:
    written = draw_fronts({"CRA": points_of(rows(0.1), NEAR)}, "a note", tmp_path / "pareto")
    assert [path.suffix for path in written] == [".png", ".svg", ".pdf"]
    drawn = written[1].read_text()
    for label in ("● CLL", "■ GloRo", "p 0.3", "ε 0.2"):
        assert f"<!-- {label} -->" in drawn


@pytest.mark.parametrize("budget", ["full", "cpu"])
def test_five_points_each_and_two_seeds_at_the_ends(budget: str, tmp_path: Path) -> None:
    trials = PARETO.trials(tmp_path, budget)
    for series in ("CLL", "GloRo"):
        mine = [(v.series, v.x, t.recipe.seed) for v, t in trials if v.series.startswith(series)]
        assert len({place[:2] for place in mine}) >= 5
        assert sum(seed == 2 for *_, seed in mine) >= 2
    alike = [t.recipe.model_copy(update={"name": "", "claim": "", "loss": None}) for _, t in trials]
    same = {(r.model.model_dump_json(), r.optimizer.model_dump_json(), r.train.epochs) for r in alike}
    assert len(same) == 1
    assert PARETO.seeds(budget) == [1, 2]
    assert PARETO.cost(budget).startswith("20 × ")
