"""Figures of the paper as commands: which recipes to train, and what to draw of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.table import Table

from lipcert.atomic import write_json
from lipcert.errors import InputError
from lipcert.recipes import read_recipe
from lipcert.recipes.axes import parse_values
from lipcert.report.moons import moons_figure, slack_figure, soc_figure, teaser_figure
from lipcert.report.rows import Row, row_of
from lipcert.report.tables import rich_table
from lipcert.sweeps import Crew, Trial, complete
from lipcert.train.rundir import RunDirectory

Draw = Callable[[Sequence[RunDirectory], Path], list[Path]]


@dataclass(frozen=True)
class Reproduction:
    """A figure: its trainings, and how it is drawn from those of the first seed."""

    name: str
    summary: str
    recipes: tuple[str, ...]
    draw: Draw


@dataclass(frozen=True)
class Report:
    """What a reproduction found, and the files it wrote."""

    table: Table
    written: list[Path]


_WIDTHS = ("-0.2", "", "-0.4", "-0.5")

REPRODUCTIONS = {
    r.name: r
    for r in (
        Reproduction(
            "moons-demo",
            "CLL and GloRo at the true margin 2ε = 0.3: the shortest look at what the library does",
            ("moons-cll", "moons-gloro"),
            moons_figure,
        ),
        Reproduction(
            "moons",
            "Figure 4: CLL over GloRo at 2ε = 0.2, 0.3, 0.4, 0.5",
            tuple(f"moons-{loss}{width}" for loss in ("cll", "gloro") for width in _WIDTHS),
            moons_figure,
        ),
        Reproduction(
            "moons-slack",
            "Slack figure of the supplement: p = 0.375, 0.125, 0.005, 0.00005 (printed 0.75 … 0.0001)",
            tuple(f"moons-slack-{p}" for p in ("0.375", "0.125", "0.005", "0.00005")),
            slack_figure,
        ),
        Reproduction(
            "moons-soc",
            "SOC figure of the supplement: 3, 7, 25 orthogonal layers, γ = 0, 0.3, 1, beside CLL",
            (*(f"moons-soc-{d}-{g}" for g in ("0", "0.3", "1") for d in (3, 7, 25)), "moons-cll"),
            soc_figure,
        ),
        Reproduction(
            "moons-teaser",
            "Figure 1: cross-entropy, GloRo and CLL with their output distributions",
            ("moons-ce", "moons-gloro", "moons-cll"),
            teaser_figure,
        ),
    )
}


def carry_out(
    name: str,
    output: Path,
    *,
    crew: Crew,
    budget: str | None = None,
    seeds: Sequence[int] = (1,),
    overwrite: bool = False,
) -> Report:
    """Train what is missing, draw the figure of the first seed, write results.json."""
    if name not in REPRODUCTIONS:
        raise InputError(f"unknown reproduction {name!r}; known: {', '.join(REPRODUCTIONS)}")
    reproduction = REPRODUCTIONS[name]
    trials = [
        Trial(output / f"{recipe}-seed{seed}", read_recipe(recipe, budget, [f"seed={seed}"]))
        for recipe in reproduction.recipes
        for seed in seeds
    ]
    _make_writable(output)
    complete(trials, crew, overwrite)
    rows = [row_of(trial.run) for trial in trials]
    first = [trial.run for trial in trials if trial.recipe.seed == seeds[0]]
    written = reproduction.draw(first, output / name)
    results = output / "results.json"
    write_json(results, _results(reproduction, budget, seeds, rows))
    return Report(rich_table(rows), [*written, results])


def _results(
    reproduction: Reproduction, budget: str | None, seeds: Sequence[int], rows: list[Row]
) -> dict[str, Any]:
    """What documents are rendered from; each row says on what machine and commit it was made."""
    options = [f"--budget {budget}"] if budget else []
    options += [f"--seeds {','.join(map(str, seeds))}"] if list(seeds) != [1] else []
    return {
        "name": reproduction.name,
        "command": " ".join(["lipcert reproduce", reproduction.name, *options]),
        "epochs": max(read_recipe(recipe, budget).train.epochs for recipe in reproduction.recipes),
        "seeds": list(seeds),
        "date": datetime.now(UTC).date().isoformat(),
        "rows": rows,
    }


def _make_writable(output: Path) -> None:
    try:
        output.mkdir(parents=True, exist_ok=True)
        probe = output / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(f"{output}: cannot be written ({error.strerror})") from None


def parse_seeds(text: str) -> list[int]:
    """1, 1..3 or 1,5,7.

    Example:
        >>> parse_seeds("1..3,7")
        [1, 2, 3, 7]
    """
    try:
        seeds = [int(value) for value in parse_values(text)]
    except ValueError:
        raise InputError(f"--seeds: expected something like 1, 1..3 or 1,5,7, got {text!r}") from None
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise InputError(f"--seeds: expected different numbers >= 0, got {text!r}")
    return seeds
