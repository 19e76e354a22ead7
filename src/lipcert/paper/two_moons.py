"""Two moons: Figures 1, 2 and 4 of the paper, Figures D2 (slack) and D3 (SOC) of its supplement.

GloRo's ε is fixed, as the authors ran it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from lipcert.paper.curve_claims import by_curve, early_mean
from lipcert.paper.definition import Claim, Draw, Earlier, Reduction, Reproduction, Trained, Variant, register
from lipcert.paper.moons_claims import (
    constants_are,
    cross_entropy_has_no_margin,
    gloro_is_smoother,
    gloro_loses_points,
    larger_constant_is_better,
    least_slack_is_imperfect,
    less_slack_certifies_more,
    no_rival_reaches,
    outputs_are_farther_apart,
    reaches_every_point,
    retains_beyond,
)
from lipcert.report.margin_figure import margin_figure
from lipcert.report.moons_figure import moons_figure, slack_figure, soc_figure, teaser_figure
from lipcert.sweeps import Trial

_MARGINS = ("-0.2", "", "-0.4", "-0.5")

# What the released configuration sets otherwise than the paper prints: p is halved and falls to 5e-16, and
# every logit has its own normaliser.
_RELEASED = (
    "loss.slack=5e-4",
    "loss.normaliser=logit",
    "schedule.loss.slack={name: polynomial, end: 5e-16, gamma: 50}",
)

# The released widths of the seven layers; the other depths keep their shape.
_SOC_WIDTHS = {
    3: [10, 10],
    7: [10, 20, 40, 40, 20, 10],
    25: [w for w in (10, 20, 40, 40, 20, 10) for _ in "1234"],
}


def _of_first_seed(trained: Trained) -> list[tuple[Variant, Trial]]:
    """Return the trainings of one seed, because a boundary is drawn for a single network."""
    seed = trained.trials[0][1].recipe.seed
    return [(variant, trial) for variant, trial in trained.trials if trial.recipe.seed == seed]


def _first_seed(draw: Callable[[Sequence[Trial], Path], list[Path]]) -> Draw:
    def drawn(trained: Trained, base: Path) -> list[Path]:
        return draw([trial for _, trial in _of_first_seed(trained)], base)

    return drawn


def _draw_by_series(trained: Trained, base: Path) -> list[Path]:
    """Draw one row per series."""
    chosen = _of_first_seed(trained)
    return moons_figure([trial for _, trial in chosen], base, [variant.series for variant, _ in chosen])


def _draw_soc(trained: Trained, base: Path) -> list[Path]:
    """Draw the orthogonal networks by depth and γ, and CLL beside them."""
    trials = [trial for _, trial in _of_first_seed(trained)]
    return soc_figure(trials, list(map(_depth_and_gamma, trials)), base)


def _depth_and_gamma(trial: Trial) -> tuple[int, float] | None:
    """Return depth and γ of a training with certificate regularisation."""
    gamma = trial.recipe.loss.arguments.get("gamma")
    return None if gamma is None else (len(trial.recipe.model.arguments["widths"]) + 1, float(gamma))


def _variants(*recipes: str) -> tuple[Variant, ...]:
    return tuple(Variant(recipe) for recipe in recipes)


RELEASED = "CLL as released"
ANNEALED, THROUGHOUT = "p annealed", "p = 1e-12 throughout"


def _released(recipe: str) -> Variant:
    return Variant(recipe, (f"name={recipe}-released", *_RELEASED), series=RELEASED)


def _constant_slack(p: str) -> Variant:
    settings = (f"name=moons-slack-{p}", f"loss.slack={p}", "schedule.loss.slack=null")
    return Variant("moons-cll", settings, float(p), "slack")


def _soc(depth: int, gamma: str) -> Variant:
    settings = (
        f"name=moons-soc-{depth}-{gamma}",
        f"model.widths={_SOC_WIDTHS[depth]}",
        f"loss.gamma={gamma}",
    )
    return Variant("moons-soc", settings, float(gamma), f"depth {depth}")


FIGURE_4 = _variants(*(f"moons-{loss}{margin}" for loss in ("cll", "gloro") for margin in _MARGINS))

register(
    Reproduction(
        "moons-demo",
        "CLL and GloRo at the true margin 2ε = 0.3: the shortest look at what the library does",
        _variants("moons-cll", "moons-gloro"),
        _first_seed(moons_figure),
    ),
    Reproduction(
        "moons-margin",
        "Figure 1: much slack and a small K_hf (left), little slack and a large one (right)",
        (_constant_slack("0.375"), Variant("moons-cll")),
        _first_seed(margin_figure),
        claims=(
            Claim(
                "too small a K_hf costs clean and certified accuracy, a large one improves both",
                "left and right panel, no numbers",
                larger_constant_is_better,
            ),
        ),
    ),
    Reproduction(
        "moons-teaser",
        "Figure 2: cross-entropy, GloRo and CLL with their output distributions",
        _variants("moons-ce", "moons-gloro", "moons-cll"),
        _first_seed(teaser_figure),
        claims=(
            Claim("cross-entropy guarantees no margin", "panel (a)", cross_entropy_has_no_margin),
            Claim("GloRo leaves training points within the margin", "panel (b)", gloro_loses_points),
            Claim("CLL leaves none", "panel (c)", reaches_every_point),
            Claim(
                "CLL's outputs lie farther apart than GloRo's",
                "x-axes of (b) and (c)",
                outputs_are_farther_apart,
            ),
        ),
    ),
    Reproduction(
        "moons",
        "Figure 4: CLL over GloRo at 2ε = 0.2, 0.3, 0.4, 0.5",
        FIGURE_4,
        _first_seed(moons_figure),
        claims=(
            Claim("CLL certifies every training point at the true margin", "100 %", reaches_every_point),
            Claim("GloRo already loses points at the true margin", "less than 100 %", gloro_loses_points),
            Claim(
                "beyond the true margin CLL retains more certified accuracy than GloRo",
                "at 2ε = 0.4 and 0.5",
                retains_beyond,
            ),
            Claim("GloRo's K_hf is consistently smaller", "at every margin", gloro_is_smoother),
        ),
    ),
    Reproduction(
        "moons-released",
        "Figure 4, top row: CLL with the settings that the authors released, beside the printed ones",
        (
            *(_released(f"moons-cll{margin}") for margin in _MARGINS),
            *(Variant(f"moons-cll{margin}", series="CLL as printed") for margin in _MARGINS),
        ),
        _draw_by_series,
    ),
    Reproduction(
        "moons-annealing",
        "Supplement, section B: CLL with its slack annealed from 1e-3 to 1e-12, and with 1e-12 throughout",
        (
            Variant("moons-cll", series=ANNEALED),
            Variant(
                "moons-cll",
                ("name=moons-cll-constant", "loss.slack=1e-12", "schedule.loss.slack=null"),
                series=THROUGHOUT,
            ),
        ),
        _draw_by_series,
        {"full": Reduction(seeds=(1, 2, 3))},
        (
            Claim(
                "training converges faster when the slack is annealed",
                "from 1e-3 to 1e-12, no numbers",
                by_curve(ANNEALED, THROUGHOUT, early_mean, "mean CRA over the first half [%]"),
            ),
        ),
    ),
    Reproduction(
        "moons-slack",
        "Figure D2: p = 0.375, 0.125, 0.005, 0.00005 (printed 0.75, 0.25, 0.01, 0.0001)",
        tuple(map(_constant_slack, ("0.375", "0.125", "0.005", "0.00005"))),
        _first_seed(slack_figure),
        claims=(
            Claim(
                "the more slack, the fewer training points are certified",
                "four panels, no numbers",
                less_slack_certifies_more,
            ),
            Claim(
                "for every training point p must be below 5e-5 (printed 0.0001)",
                "nearly 100 % at 5e-5",
                least_slack_is_imperfect,
            ),
        ),
    ),
    Reproduction(
        "moons-soc",
        "Figure D3: 3, 7 and 25 orthogonal layers with γ = 0, 0.3, 1, trained as released, beside CLL",
        (*(_soc(depth, gamma) for gamma in ("0", "0.3", "1") for depth in (3, 7, 25)), Variant("moons-cll")),
        _draw_soc,
        claims=(
            Claim(
                "no orthogonal network certifies 90 % of the training points, at any depth or γ",
                "below 90 %",
                no_rival_reaches(0.9),
            ),
            Claim("their K_hf is 2.0", "2.0 in all nine panels", constants_are(2.0)),
        ),
        earlier=Earlier("2026-11-18", "trained like moons-cll with Adam, not as released"),
    ),
)
