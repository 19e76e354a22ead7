"""Tables 1 and 2 of the paper, B3 and D1 to D4 of its supplement: every row, with what is printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lipcert.paper.definition import Reduction, Reproduction, Trained, Variant, register
from lipcert.paper.outcome import Outcome
from lipcert.paper.printed_measures import CLEAN, FAR, MIDDLE, NEAR
from lipcert.paper.two_moons import FIGURE_4
from lipcert.report.comparison import compare
from lipcert.report.published import published
from lipcert.runs.measures import K_F, K_HF, SECONDS, TIGHTNESS, Measure, cra_at_eps, measures_of
from lipcert.tables import Column, Table
from lipcert.tables.grouping import grouped
from lipcert.tables.kinds import COUNT, SETTING, TEXT, Deviation
from lipcert.tables.table_files import write_table

TINY = (
    "tiny-8c2f-gloro-trades",
    "tiny-8c2f-local-lip-b",
    "tiny-8c2f-cll",
    "tiny-lipconv10-soc",
    "tiny-lipconv20-soc",
    "tiny-lipconv20-cll",
    "tiny-lipconv10-cll",
    "tiny-sll-xl",
    "tiny-sandwich",
    "tiny-8c2f-cll-1.0",
)
CIFAR10 = (
    "cifar10-6c2f-local-lip-b",
    "cifar10-6c2f-gloro",
    "cifar10-4c3f-gloro",
    "cifar10-6c2f-cll",
    "cifar10-4c3f-cll",
    "cifar10-lipconv20-soc",
    "cifar10-lipconv20-cll",
    "cifar10-cpl-xl",
    "cifar10-cpl-xl-cll",
    "cifar10-sll-xl",
    "cifar10-sll-xl-cll",
)
CIFAR100 = (
    "cifar100-lipconv20-soc",
    "cifar100-lipconv20-cll",
    "cifar100-cpl-xl",
    "cifar100-cpl-xl-cll",
    "cifar100-sll-xl",
    "cifar100-sll-xl-cll",
)
# The supplement prints nine seeds of these.
SEEDED = tuple(published().seeds)
NINE = tuple(range(1, 10))

# Printed numbers by series and x, accuracies as fractions.
Printed = Mapping[tuple[str, float], Mapping[Measure, float]]


def draw_compared(trained: Trained, base: Path) -> list[Path]:
    """Write every run, and after it the paper's row."""
    return write_table(compare([trial for _, trial in trained.trials]), base)


def _over_seeds(trained: Trained, base: Path) -> list[Path]:
    return write_table(seed_table(trained.outcomes), base)


@dataclass(frozen=True)
class SeedRow:
    """Mean and standard deviation over the seeds of a recipe, found here or printed."""

    recipe: str
    trainings: int
    numbers: Mapping[Measure, Deviation]


def seed_table(outcomes: Sequence[Outcome]) -> Table[SeedRow]:
    """Lay out one line per recipe, and after it what the supplement prints."""
    ours = [_seed_row(recipe, group) for recipe, group in grouped(outcomes, _recipe).items()]
    measures = [m for m in ours[0].numbers if all(m in row.numbers for row in ours)]
    columns: list[Column[SeedRow]] = [
        Column("recipe", TEXT, lambda row: row.recipe),
        Column("trainings", COUNT, lambda row: row.trainings),
        *(_seed_column(measure) for measure in measures),
    ]
    return Table(columns, [row for mine in ours for row in (mine, *_printed_row(mine.recipe))])


def _recipe(outcome: Outcome) -> str:
    return outcome.run.recipe


def _seed_row(recipe: str, outcomes: Sequence[Outcome]) -> SeedRow:
    runs = [outcome.run for outcome in outcomes]
    at_eps = [m for m in map(cra_at_eps, runs[0].splits) if m.numbers(runs)]
    measures = [*(m for m in measures_of(runs) if m != SECONDS), *at_eps]
    return SeedRow(recipe, len(runs), {m: Deviation.of(m.numbers(runs)) for m in measures})


def _seed_column(measure: Measure) -> Column[SeedRow]:
    return Column(measure.title, measure.kind, lambda row: row.numbers.get(measure))


def _printed_row(recipe: str) -> list[SeedRow]:
    """Return mean and standard deviation as printed, in the units of ours."""
    found = published().seeds.get(recipe)
    if found is None:
        return []
    printed = {
        CLEAN: found.clean,
        NEAR: found.cra_36,
        MIDDLE: found.cra_72,
        FAR: found.cra_108,
        K_F: found.k_f,
        TIGHTNESS: found.tightness,
    }
    numbers = {m: Deviation(*(v / m.kind.scale for v in values)) for m, values in printed.items()}
    return [SeedRow(f"{recipe}, the paper's", len(NINE), numbers)]


@dataclass(frozen=True)
class PrintedPlace:
    """All seeds of one x of one series, and what the paper prints there."""

    series: str
    x: float
    outcomes: Sequence[Outcome]
    printed: Mapping[Measure, float]


def _beside(title: str, recipe: str, printed: Printed, trained: Trained, base: Path) -> list[Path]:
    """Write one line per place: what was found, over the seeds, and what the paper prints for this recipe."""
    if any(variant.recipe != recipe for variant, _ in trained.trials):
        printed = {}  # another network on other data
    groups = grouped(trained.outcomes, lambda outcome: (outcome.series, outcome.x or 0.0))
    rows = [
        PrintedPlace(series, x, group, printed.get((series, x), {})) for (series, x), group in groups.items()
    ]
    columns: list[Column[PrintedPlace]] = [
        Column("series", TEXT, lambda row: row.series),
        Column(title, SETTING, lambda row: row.x),
    ]
    for measure in (CLEAN, NEAR, FAR, K_HF):
        columns += [_found_column(measure), *([_printed_column(measure)] if printed else [])]
    return write_table(Table(columns, rows), base)


def _found_column(measure: Measure) -> Column[PrintedPlace]:
    return Column(
        measure.short_title, measure.kind, lambda row: measure.deviation(o.run for o in row.outcomes)
    )


def _printed_column(measure: Measure) -> Column[PrintedPlace]:
    return Column("paper", measure.kind, lambda row: row.printed.get(measure))


def _rows(*recipes: str) -> tuple[Variant, ...]:
    return tuple(Variant(recipe) for recipe in recipes)


_MATRIX = published().figures.epsilon_slack_matrix_8c2f_tiny_imagenet
_EPSILONS, _SLACKS = _MATRIX.epsilon, _MATRIX.slack


# The cells of Table D1 that its main claim compares, and others to trade with.
_FEW_EPSILONS, _FEW_SLACKS = (0.15, 0.5, 0.75), (0.025, 0.0025)
_8C2F, _4C3F = "tiny-8c2f-cll", "cifar10-4c3f-cll"


def series_at(slack: float) -> str:
    """Return the name of a row of Table D1."""
    return f"p = {slack:g}"


def _cells(recipe: str, epsilons: Sequence[float], slacks: Sequence[float]) -> tuple[Variant, ...]:
    """Vary ε and slack."""
    return tuple(
        Variant(recipe, (f"loss.eps={eps}", f"loss.slack={slack!r}"), eps, series_at(slack))
        for slack in slacks
        for eps in epsilons
    )


def _printed_cells() -> Printed:
    printed = {CLEAN: _MATRIX.clean, NEAR: _MATRIX.cra_36, FAR: _MATRIX.cra_108, K_HF: _MATRIX.k_hf}
    return {
        (series_at(slack), eps): {m: rows[i][j] / m.kind.scale for m, rows in printed.items()}
        for i, slack in enumerate(_SLACKS)
        for j, eps in enumerate(_EPSILONS)
    }


_SOC = published().figures.soc_gamma_tiny_imagenet_lipconv10


_LIPCONV = "tiny-lipconv10-soc"
# Faster certificates of the test split alone, one thread.
_QUICK = ("train.threads=1", "certify.effort=auto", "certify.splits=[test]", "certify.tightness=null")


def _gammas(recipe: str, *settings: str) -> tuple[Variant, ...]:
    return tuple(Variant(recipe, (*settings, f"loss.gamma={g}"), g, "SOC") for g in _SOC.gamma)


def _printed_gammas() -> Printed:
    columns = zip(_SOC.gamma, _SOC.clean, _SOC.cra_36, strict=True)
    return {("SOC", gamma): {CLEAN: accuracy / 100, NEAR: near / 100} for gamma, accuracy, near in columns}


register(
    Reproduction(
        "table-tiny-imagenet",
        "Table 1: CLL and its rivals on Tiny-ImageNet",
        _rows(*TINY),
        draw_compared,
        {"smoke": Reduction(variants=_rows(*TINY[1:3]))},
    ),
    Reproduction(
        "table-cifar10",
        "Table 2: CLL and its rivals on CIFAR-10",
        _rows(*CIFAR10),
        draw_compared,
        {"smoke": Reduction(variants=_rows("cifar10-4c3f-gloro", "cifar10-4c3f-cll"))},
    ),
    Reproduction(
        "table-cifar100",
        "Table 2: CLL and its rivals on CIFAR-100",
        _rows(*CIFAR100),
        draw_compared,
        {"smoke": Reduction(variants=_rows(*CIFAR100[1:3]))},
    ),
    Reproduction(
        "table-seeds",
        "The main results over nine seeds, as mean ± standard deviation; cpu: Figure 4 over nine seeds",
        _rows(*SEEDED),
        _over_seeds,
        {
            "full": Reduction(seeds=NINE),
            "cpu": Reduction(seeds=NINE, variants=FIGURE_4, cost="8 min on 2 cores"),
            "smoke": Reduction(seeds=(1, 2), variants=FIGURE_4),
        },
    ),
    Reproduction(
        "table-epsilon-slack",
        "8C2F on Tiny-ImageNet with 25 combinations of ε and slack; cpu: six of a thin 4C3F on CIFAR-10",
        _cells(_8C2F, _EPSILONS, _SLACKS),
        partial(_beside, "ε", _8C2F, _printed_cells()),
        {
            # A few hundred steps on the small Tiny-ImageNet decide nothing.
            "cpu": Reduction(
                ("model.width=0.25", "train.epochs=6", *_QUICK),
                (1, 2),
                _cells(_4C3F, _FEW_EPSILONS, _FEW_SLACKS),
                instead="4C3F on CIFAR-10 instead of 8C2F on Tiny-ImageNet",
            ),
            "smoke": Reduction(variants=_cells(_8C2F, _EPSILONS[:1], _SLACKS[:2])),
        },
    ),
    Reproduction(
        "table-soc-gamma",
        "LipConv-10 on Tiny-ImageNet with certificates of weight γ = 0.05 … 0.4; cpu: thin, on CIFAR-10",
        _gammas(_LIPCONV),
        partial(_beside, "γ", _LIPCONV, _printed_gammas()),
        {
            # The head of the table's network, which the CIFAR-10 row does not have.
            "cpu": Reduction(
                _QUICK,
                (1, 2),
                _gammas("cifar10-lipconv20-soc", "model.head=lln"),
                instead="LipConv-5 on CIFAR-10 instead of LipConv-10 on Tiny-ImageNet",
            ),
            "smoke": Reduction(variants=_gammas(_LIPCONV)[:2]),
        },
    ),
)
