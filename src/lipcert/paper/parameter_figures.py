"""Sweeps of 4C3F on CIFAR-10: Figure 5 of the paper, Figures D1 and D4a to D4c of its supplement.

Figure 5 varies slack and ε, D1 shows convergence, D4a varies λ, D4b the offset δ, D4c GloRo's temperature.

GloRo's ε follows what the authors ran. In Figure 5 it grows from 0 by a polynomial with γ = 5. In Figure D1
it is fixed, as the supplement says. In Table 2 it is logarithmic, and so in the full budget of Figure D4c.
Other schedules stand beside these as variants with a series of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lipcert.paper import captions
from lipcert.paper.claims import (
    ahead,
    better_at,
    constant,
    falls,
    falls_outside,
    insensitive,
    peaks,
    scale_sets_khf,
    steadier,
    trades,
)
from lipcert.paper.curve_claims import by_curve, early_mean, falls_added_up
from lipcert.paper.definition import Claim, Reduction, Reproduction, Trained, Variant, register
from lipcert.paper.outcome import Outcome, places, series_of
from lipcert.paper.printed_measures import CLEAN, NEAR
from lipcert.report.method_names import method_of
from lipcert.report.plotted_curve import Curve
from lipcert.report.published import published
from lipcert.report.seed_curves import Axis, Panel, PrintedCurve, draw_curves
from lipcert.runs.measures import K_F, K_HF, TIGHTNESS, Measure, cra_at_eps
from lipcert.tables.kinds import CONSTANT, PERCENT, Kind, Range
from lipcert.types import BudgetName

CLL, GLORO = "cifar10-4c3f-cll", "cifar10-4c3f-gloro"
CRA, AT_EPS = NEAR, cra_at_eps("test")

# A quarter of the width and six epochs: 4C3F in about three minutes on one core.
_THIN = ("model.width=0.25", "train.epochs=6", "certify.effort=auto", "train.threads=1")
_SEEDS = (1, 2)


def _budgets(few: Sequence[Variant], *settings: str, cost: str = "") -> dict[BudgetName, Reduction]:
    """Return reductions for a CPU and for a smoke test; `cost` is that of the first."""
    return {
        "cpu": Reduction((*_THIN, *settings), _SEEDS, tuple(few), cost),
        "smoke": Reduction(variants=(few[0], few[-1])),
    }


def _over(key: str, values: Sequence[float], recipe: str = CLL, series: str = "") -> tuple[Variant, ...]:
    return tuple(Variant(recipe, (f"{key}={value!r}",), value, series) for value in values)


@dataclass(frozen=True)
class _Measured:
    """A panel before it is drawn: its measures, one curve for each measure of each series."""

    title: str
    kind: Kind
    measures: tuple[Measure, ...]
    log: bool = False
    printed: tuple[PrintedCurve, ...] = ()

    def panel(self, trained: Trained) -> Panel:
        """Take the numbers of the trainings."""
        curves = [
            Curve(self._name(series, measure), _method(trained, series), i, [(p.x, p.range) for p in found])
            for i, measure in enumerate(self.measures)
            for series in series_of(trained.outcomes)
            if (found := places(trained.outcomes, series, measure))
        ]
        return Panel(self.title, self.kind, curves, self.log, self.printed)

    def _name(self, series: str, measure: Measure) -> str:
        return " ".join(filter(None, (series, measure.short_title if len(self.measures) > 1 else "")))


def _method(trained: Trained, series: str) -> str:
    return next(method_of(trial.recipe) for variant, trial in trained.trials if variant.series == series)


def caption(trained: Trained, of: str = "test split, proved bounds") -> str:
    """Say what was trained, and that bars reach from seed to seed."""
    return captions.caption(trained, "4C3F", of, several="bars: least and most of {}")


def _draw(axis: Axis, panels: Sequence[_Measured], trained: Trained, base: Path) -> list[Path]:
    return draw_curves(axis, [panel.panel(trained) for panel in panels], caption(trained), base)


_ACCURACIES = _Measured("accuracy [%]", PERCENT, (CLEAN, CRA))
_CONSTANTS = _Measured("constant K [per L2 distance]", CONSTANT, (K_F, K_HF), log=True)

_SLACKS = (0.005, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
_FEW_SLACKS = (0.005, 0.05, 0.15, 0.25, 0.4)

SLACK = Reproduction(
    "fig-slack",
    "Figure 5, left: slack p = 0.005 … 0.4 (printed 0.01 … 0.8) trades clean for certified accuracy, 4C3F",
    _over("loss.slack", _SLACKS),
    partial(_draw, Axis("slack p [probability]"), (_ACCURACIES, _CONSTANTS)),
    _budgets(_over("loss.slack", _FEW_SLACKS), cost="28 min on 2 cores beside other work"),
    (
        Claim(
            "slack trades clean for certified accuracy",
            "clean 80 → 68 %, CRA up to 61.9 % at p = 0.2 (printed 0.4)",
            trades(CLEAN, CRA),
        ),
        Claim("beyond that slack, certified accuracy falls again", "peak at p = 0.2", peaks(CRA)),
        Claim("K_hf is 1/σ, whatever K_f does", "K_hf = 1/σ(p)", scale_sets_khf),
    ),
)

LOGARITHMIC = "GloRo, ε logarithmic"
_EPSILONS = tuple(published().figures.epsilon_sweep_4c3f_cifar10.epsilon)
_FEW_EPSILONS = (0.15, 0.5, 1.25)


# The authors' 4C3F of this figure has 3×3 kernels where the stride is 2; Table B2 prints 4×4.
_SMALL_KERNELS = "model.kernel=3"


def _epsilons(
    *settings: str, every: Sequence[float] = _EPSILONS, logarithmic: Sequence[float]
) -> tuple[Variant, ...]:
    """Return the variants, certified at the ε of training; GloRo as released, and logarithmic at few ε."""
    growing = "schedule.loss.eps={name: logarithmic}"
    return (
        *(Variant(CLL, (*settings, *_trained_at(eps)), eps, "CLL") for eps in every),
        *(Variant(GLORO, (*settings, *_polynomial(eps)), eps, "GloRo") for eps in every),
        *(Variant(GLORO, (*settings, *_trained_at(eps), growing), eps, LOGARITHMIC) for eps in logarithmic),
    )


def _trained_at(eps: float) -> tuple[str, ...]:
    return f"loss.eps={eps}", f"certify.radii=[{eps}]"


def _polynomial(eps: float) -> tuple[str, ...]:
    """Let ε grow from 0 by a polynomial; a loss needs ε > 0, so from next to nothing."""
    schedule = f"schedule.loss.eps={{name: polynomial, end: {eps}, gamma: 5}}"
    return "loss.eps=1e-9", schedule, f"certify.radii=[{eps}]"


def _printed_epsilons() -> tuple[PrintedCurve, ...]:
    found = published().figures.epsilon_sweep_4c3f_cifar10
    return tuple(
        PrintedCurve(name, list(zip(found.epsilon, values, strict=True)))
        for name, values in (("CLL", found.cll), ("GloRo", found.gloro))
    )


EPSILON = Reproduction(
    "fig-epsilon",
    "Figure 5, right: ε = 0.15 … 1.25, CLL against GloRo: CRA at ε, constants, tightness, 4C3F",
    _epsilons(_SMALL_KERNELS, logarithmic=(0.15, 0.5)),
    partial(
        _draw,
        Axis("ε [L2 distance]"),
        (
            _Measured("CRA at ε [%]", PERCENT, (AT_EPS,), printed=_printed_epsilons()),
            _CONSTANTS,
            _Measured("tightness [%]", PERCENT, (TIGHTNESS,)),
        ),
    ),
    {
        # Twelve epochs: after six the two losses are still equal. Kernels are those of Table B2. The
        # smallest, a middle and the largest ε: about an hour of one core.
        **_budgets(
            _epsilons(every=_FEW_EPSILONS, logarithmic=_FEW_EPSILONS[:1]),
            "certify.tightness=cpu",
            "train.epochs=12",
            cost="about 40 min of one core",
        ),
        # The ends of both.
        "smoke": Reduction(variants=_epsilons(every=_EPSILONS[::5], logarithmic=())),
    },
    (
        Claim(
            "CLL certifies more than GloRo at every ε",
            "+0.5 to +2.0 points, 3 % relatively or more",
            ahead(AT_EPS, "CLL", "GloRo"),
        ),
        Claim("CLL's bounds are tighter than GloRo's", "at every ε", ahead(TIGHTNESS, "CLL", "GloRo")),
        Claim(
            "CLL has the larger K_hf (its own is set by ε and p)",
            "at every ε, with p = 0.15; p = 0.25 in the cpu budget",
            ahead(K_HF, "CLL", "GloRo"),
        ),
        Claim("K_f of CLL is decoupled from ε", "about 10³ at every ε", steadier(K_F, "CLL", "GloRo")),
        Claim("K_hf is 1/σ, whatever K_f does", "K_hf = 1/σ(p)", scale_sets_khf),
    ),
)

_LAMBDAS = tuple(10.0**k for k in range(-15, 0))
_FEW_LAMBDAS = tuple(10.0**k for k in (-15, -12, -10, -8, -6, -4, -3, -2, -1))

LAMBDA = Reproduction(
    "fig-lambda",
    "Figure D4a: λ = 1e-15 … 1e-1, CRA and K_f, 4C3F",
    _over("loss.lam", _LAMBDAS),
    partial(_draw, Axis("λ [weight of the penalty]", log=True), (_ACCURACIES, _CONSTANTS)),
    # As in the paper K is detached: only λ controls it.
    _budgets(
        _over("loss.lam", _FEW_LAMBDAS),
        "loss.detach_constant=true",
        cost="26 min on 2 cores beside other work",
    ),
    (
        Claim(
            "CRA is insensitive to λ over a wide range",
            "from 1e-10 to 1e-4 (supplement), to 1e-3 (main text)",
            insensitive(CRA, 1e-10, 1e-4, points=2.0),
        ),
        Claim("CRA falls beyond either end of it", "at 1e-15 and at 1e-1", falls_outside(CRA, 1e-10, 1e-4)),
        Claim("K_f rises exponentially as λ falls", "with every power of ten of λ", falls(K_F)),
        Claim("K_hf is 1/σ, whatever K_f does", "K_hf = 1/σ(p)", scale_sets_khf),
    ),
)

_OFFSETS = tuple(round(0.1 + 0.02 * i, 2) for i in range(11))

OFFSET = Reproduction(
    "fig-offset",
    "Figure D4b: eleven margin offsets δ = 0.1 … 0.3 at ε = 0.15, 4C3F",
    _over("loss.offset", _OFFSETS),
    partial(_draw, Axis("offset δ [L2 distance]"), (_ACCURACIES,)),
    # The ends, ε itself, the printed best, and one between.
    _budgets(_over("loss.offset", (0.1, 0.15, 0.2, 0.25, 0.3))),
    (
        Claim(
            "a larger δ trades clean for certified accuracy",
            "δ = 0.2: clean 76.2, CRA 62.0 % (0.15: 77.6, 61.4)",
            trades(CLEAN, CRA),
        ),
        Claim(
            "δ = 0.2 certifies more than the canonical δ = ε",
            "62.0 against 61.4 % at 36/255",
            better_at(CRA, 0.2, 0.15),
        ),
    ),
)

_SCALES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)

TEMPERATURE = Reproduction(
    "fig-temperature",
    "Figure D4c: GloRo with its logits scaled by s has no slack effect, 4C3F",
    _over("loss.temperature", _SCALES, GLORO),
    partial(_draw, Axis("scale s of the logits [factor]", log=True), (_ACCURACIES, _CONSTANTS)),
    _budgets(_over("loss.temperature", _SCALES[::2], GLORO), cost="13 min on 2 cores"),
    (
        Claim("scaling GloRo's logits does not move K_hf", "no effect", constant(K_HF, factor=1.25)),
        Claim(
            "scaling GloRo's logits does not move CRA",
            "little to none",
            insensitive(CRA, 0.0, math.inf, points=2.0),
        ),
    ),
)


def _convergence(trained: Trained, base: Path) -> list[Path]:
    series = series_of(trained.outcomes)
    curves = [
        Curve(one, _method(trained, one), series.index(one), by_epoch(trained.outcomes, one))
        for one in series
    ]
    panel = Panel("CRA, estimated [%]", PERCENT, [curve for curve in curves if curve.points])
    note = caption(trained, "validation split, estimated bounds")
    return draw_curves(Axis("time [epochs]"), [panel], note, base)


def by_epoch(outcomes: Sequence[Outcome], series: str) -> list[tuple[float, Range]]:
    """Return the estimated CRA of a series after every epoch, over the seeds; all epochs are validated."""
    seeds = [outcome.cra_by_epoch for outcome in outcomes if outcome.series == series]
    return [(float(epoch), Range.of(values)) for epoch, values in enumerate(zip(*seeds, strict=True), 1)]


FIXED, GROWING = "GloRo", "GloRo, ε growing"
# The curves are those of a validation split, which the full recipes do not hold out.
_EVERY_EPOCH = ("data.val=null", "train.validate_every=1")
_THREE = (
    Variant(CLL, _EVERY_EPOCH, series="CLL"),
    Variant(GLORO, (*_EVERY_EPOCH, "schedule.loss.eps=null"), series=FIXED),
    # As in Table 2.
    Variant(GLORO, (*_EVERY_EPOCH, "schedule.loss.eps={name: logarithmic}"), series=GROWING),
)

CONVERGENCE = Reproduction(
    "fig-convergence",
    "Figure D1: CRA over epochs, CLL against GloRo with ε fixed and growing, 4C3F",
    _THREE,
    _convergence,
    {
        # The learning rate of the paper, constant for half of the time.
        **_budgets(
            _THREE,
            "train.epochs=20",
            "optimizer.lr=1e-3",
            "schedule.optimizer.lr={name: multistep, at: [0.5, 0.75, 0.975], factor: 0.1}",
            cost="25 min on 2 cores",
        ),
        "smoke": Reduction(variants=_THREE[:2]),
    },
    (
        Claim(
            "CLL converges faster than GloRo",
            'GloRo with a fixed ε, "to draw a fair comparison"',
            by_curve("CLL", FIXED, early_mean, "mean CRA over the first half [%]"),
        ),
        Claim(
            "CLL's curve is less noisy",
            "GloRo with a fixed ε",
            by_curve(
                "CLL",
                FIXED,
                falls_added_up,
                "falls from epoch to epoch, added up [points]",
                is_less_better=True,
            ),
        ),
    ),
)

register(SLACK, EPSILON, LAMBDA, OFFSET, TEMPERATURE, CONVERGENCE)
