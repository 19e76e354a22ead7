"""Outcomes of trainings that never were, for tests of claims, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lipcert.data.base import Split
from lipcert.environment import Environment
from lipcert.paper.outcome import Outcome
from lipcert.runs.rows import RunRow, SplitRow
from lipcert.tables.kinds import Interval


def outcome(
    series: str = "",
    x: float | None = None,
    *,
    clean: float = 0.8,
    cra: float = 0.5,
    k_f: float = 10.0,
    k_hf: float = 10.0,
    tightness: float | None = None,
    loss: str = "cll",
    recipe: str = "recipe",
    seed: int = 1,
    k_f_in_training: float | None = 10.0,
    cra_by_epoch: tuple[float, ...] = (),
) -> Outcome:
    """An outcome on the test split, certified at 36/255."""
    run = RunRow(
        recipe=recipe,
        seed=seed,
        loss=loss,
        slack=None,
        loss_eps=None,
        k_f=k_f,
        k_hf=k_hf,
        tightness=tightness,
        seconds=1.0,
        environment=Environment(lipcert="", commit=None, python="", torch="", machine=""),
        splits={"test": SplitRow(100, clean, {36 / 255: cra}, Interval(0.0, 1.0))},
    )
    return Outcome(run, series, x, k_f_in_training, cra_by_epoch)


def validated(certified: Mapping[float, float], k_f: float = 10.0) -> RunRow:
    """A run on the validation split, by radius."""
    splits: dict[Split, SplitRow] = {"val": SplitRow(100, 0.8, certified, Interval(0.0, 1.0))}
    return replace(outcome(k_f=k_f).run, splits=splits)
