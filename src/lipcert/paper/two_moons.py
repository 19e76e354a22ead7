"""Two moons: Figures 1 and 4, slack and SOC of the supplement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from lipcert.paper.definition import Draw, Reproduction, Trained, Variant, register
from lipcert.report.moons_figure import moons_figure, slack_figure, soc_figure, teaser_figure
from lipcert.runs import Run

_WIDTHS = ("-0.2", "", "-0.4", "-0.5")


def _first_seed(draw: Callable[[Sequence[Run], Path], list[Path]]) -> Draw:
    """Boundaries are drawn of one seed."""

    def drawn(trained: Trained, base: Path) -> list[Path]:
        seed = trained.trials[0][1].recipe.seed
        return draw([trial.run for _, trial in trained.trials if trial.recipe.seed == seed], base)

    return drawn


def _variants(*recipes: str) -> tuple[Variant, ...]:
    return tuple(Variant(recipe) for recipe in recipes)


def _constant_slack(p: str) -> Variant:
    settings = (f"name=moons-slack-{p}", f"loss.slack={p}", "schedule.loss.slack=null")
    return Variant("moons-cll", settings, float(p), "slack")


def _soc(depth: int, gamma: str) -> Variant:
    settings = (f"name=moons-soc-{depth}-{gamma}", f"model.depth={depth}", f"loss.gamma={gamma}")
    return Variant("moons-soc", settings, float(gamma), f"depth {depth}")


FIGURE_4 = _variants(*(f"moons-{loss}{width}" for loss in ("cll", "gloro") for width in _WIDTHS))

register(
    Reproduction(
        "moons-demo",
        "CLL and GloRo at the true margin 2ε = 0.3: the shortest look at what the library does",
        _variants("moons-cll", "moons-gloro"),
        _first_seed(moons_figure),
    ),
    Reproduction(
        "moons",
        "Figure 4: CLL over GloRo at 2ε = 0.2, 0.3, 0.4, 0.5",
        FIGURE_4,
        _first_seed(moons_figure),
    ),
    Reproduction(
        "moons-slack",
        "Slack figure of the supplement: p = 0.375, 0.125, 0.005, 0.00005 (printed 0.75 … 0.0001)",
        tuple(map(_constant_slack, ("0.375", "0.125", "0.005", "0.00005"))),
        _first_seed(slack_figure),
    ),
    Reproduction(
        "moons-soc",
        "SOC figure of the supplement: 3, 7, 25 orthogonal layers, γ = 0, 0.3, 1, beside CLL",
        (*(_soc(depth, gamma) for gamma in ("0", "0.3", "1") for depth in (3, 7, 25)), Variant("moons-cll")),
        _first_seed(soc_figure),
    ),
    Reproduction(
        "moons-teaser",
        "Figure 2: cross-entropy, GloRo and CLL with their output distributions",
        _variants("moons-ce", "moons-gloro", "moons-cll"),
        _first_seed(teaser_figure),
    ),
)
