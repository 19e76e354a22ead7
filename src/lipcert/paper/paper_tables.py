"""The tables of the paper: every row of rivals and CLL, with the printed numbers beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from lipcert.paper.definition import Reduction, Reproduction, Trained, Variant
from lipcert.paper.two_moons import FIGURE_4
from lipcert.report.comparison import compare, write_comparison
from lipcert.report.published import published
from lipcert.runs.rows import Row
from lipcert.sweeps.findings import cell, over_seeds

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
# The recipes for which the supplement prints nine seeds.
SEEDED = tuple(published()["seeds"])
NINE = tuple(range(1, 10))

# Printed numbers by series and x.
Printed = Mapping[tuple[str, float], Mapping[str, float]]

_COLUMNS = {
    "clean": "test clean",
    "CRA 36/255": "test CRA 36/255",
    "CRA 108/255": "test CRA 108/255",
    "K_hf": "K_hf",
}


_SEED_COLUMNS = {
    "test clean": "clean",
    "test CRA 36/255": "cra_36",
    "test CRA 72/255": "cra_72",
    "test CRA 108/255": "cra_108",
    "K_f": "k_f",
    "tightness": "tightness",
}


def _compared(trained: Trained, base: Path) -> list[Path]:
    """Write every run, followed by the paper's row."""
    return write_comparison(*compare([trial.run for _, trial in trained.trials]), base)


def _over_seeds(trained: Trained, base: Path) -> list[Path]:
    """Write means over seeds as text."""
    return write_comparison(*seed_cells(trained.rows), base)


def seed_cells(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return titles, and one line per recipe: mean ± standard deviation, then the supplement's numbers."""
    summary = over_seeds(rows, ("recipe",))
    titles = [t for t in summary[0] if all(t in row for row in summary) and _is_shown(t)]
    lines = [line for row in summary for line in (row, *_printed_line(row["recipe"]))]
    return titles, [[cell(t, line.get(t)) for t in titles] for line in lines]


def _printed_line(recipe: str) -> list[Row]:
    """Return the printed mean and standard deviation in our units."""
    found = published()["seeds"].get(recipe)
    if found is None:
        return []
    scales = {title: (name, 1 if name == "k_f" else 100) for title, name in _SEED_COLUMNS.items()}
    numbers = {t: tuple(v / scale for v in found[name]) for t, (name, scale) in scales.items()}
    return [{"recipe": f"{recipe}, the paper's", "trainings": len(NINE), **numbers}]


def _is_shown(title: str) -> bool:
    constants = ("recipe", "trainings", "K_f", "K_hf", "tightness")
    return title in constants or title.split(" ")[0] in ("train", "val", "test")


def _beside(title: str, printed: Printed, trained: Trained, base: Path) -> list[Path]:
    """Write one line per cell: the result over the seeds, and the paper's number."""
    titles = ["series", title, *(t for name in _COLUMNS for t in (name, "paper"))]
    cells = []
    for row in over_seeds(trained.rows, ("series", "x")):
        paper = printed.get((row["series"], float(row["x"])), {})
        pairs = [(cell(key, row.get(key)), cell(key, paper.get(name))) for name, key in _COLUMNS.items()]
        cells.append([row["series"], row["x"], *(text for pair in pairs for text in pair)])
    return write_comparison(titles, cells, base)


def _rows(*recipes: str) -> tuple[Variant, ...]:
    return tuple(Variant(recipe) for recipe in recipes)


_MATRIX = published()["figures"]["epsilon_slack_matrix_8c2f_tiny_imagenet"]
_EPSILONS, _SLACKS = _MATRIX["epsilon"], [printed / 2 for printed in _MATRIX["printed_slack"]]


def _cells(epsilons: Sequence[float], slacks: Sequence[float]) -> tuple[Variant, ...]:
    """Return combinations of ε and slack for 8C2F on Tiny-ImageNet."""
    return tuple(
        Variant("tiny-8c2f-cll", (f"loss.eps={eps}", f"loss.slack={slack!r}"), eps, f"p = {slack:g}")
        for slack in slacks
        for eps in epsilons
    )


def _printed_cells() -> Printed:
    names = {"clean": "clean", "CRA 36/255": "cra_36", "CRA 108/255": "cra_108", "K_hf": "k_hf"}
    return {
        (f"p = {slack:g}", eps): {name: _MATRIX[key][i][j] for name, key in names.items()}
        for i, slack in enumerate(_SLACKS)
        for j, eps in enumerate(_EPSILONS)
    }


_SOC = published()["figures"]["soc_gamma_tiny_imagenet_lipconv10"]


def _gammas() -> tuple[Variant, ...]:
    return tuple(Variant("tiny-lipconv10-soc", (f"loss.gamma={g}",), g, "SOC") for g in _SOC["gamma"])


def _printed_gammas() -> Printed:
    columns = zip(_SOC["gamma"], _SOC["clean"], _SOC["cra_36"], strict=True)
    return {("SOC", gamma): {"clean": clean, "CRA 36/255": cra} for gamma, clean, cra in columns}


REPRODUCTIONS = (
    Reproduction(
        "table-tiny-imagenet",
        "Table 1: Tiny-ImageNet, rivals and CLL",
        _rows(*TINY),
        _compared,
        {"smoke": Reduction(variants=_rows(*TINY[1:3]))},
    ),
    Reproduction(
        "table-cifar10",
        "Table 2, CIFAR-10: rivals and CLL",
        _rows(*CIFAR10),
        _compared,
        {"smoke": Reduction(variants=_rows("cifar10-4c3f-gloro", "cifar10-4c3f-cll"))},
    ),
    Reproduction(
        "table-cifar100",
        "Table 2, CIFAR-100: rivals and CLL",
        _rows(*CIFAR100),
        _compared,
        {"smoke": Reduction(variants=_rows(*CIFAR100[1:3]))},
    ),
    Reproduction(
        "table-seeds",
        "Main results with seeds 1 … 9, mean ± standard deviation; cpu: Figure 4 with nine seeds",
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
        "25 combinations of ε and slack, 8C2F on Tiny-ImageNet",
        _cells(_EPSILONS, _SLACKS),
        partial(_beside, "ε", _printed_cells()),
        {
            "cpu": Reduction(
                ("model.width=0.25", "train.epochs=4"), (1, 2), _cells(_EPSILONS[::2], _SLACKS[::2])
            ),
            "smoke": Reduction(variants=_cells(_EPSILONS[:1], _SLACKS[:2])),
        },
    ),
    Reproduction(
        "table-soc-gamma",
        "SOC's reward of certificates γ = 0.05 … 0.4, LipConv-10 on Tiny-ImageNet",
        _gammas(),
        partial(_beside, "γ", _printed_gammas()),
        {"cpu": Reduction(seeds=(1, 2)), "smoke": Reduction(variants=_gammas()[:2])},
    ),
)
