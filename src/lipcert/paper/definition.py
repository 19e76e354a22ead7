"""The definition of a table or figure of the paper: trainings, drawings, claims."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from lipcert.errors import InputError
from lipcert.paper.network_size import network_sizes
from lipcert.paper.verdict import Finding
from lipcert.recipes import read_recipe
from lipcert.registry import Registry
from lipcert.sweeps import Trial
from lipcert.types import BudgetName

if TYPE_CHECKING:
    from lipcert.paper.outcome import Outcome

BUDGETS: tuple[BudgetName, ...] = get_args(BudgetName)

# Hours of a GPU for the trainings of the full budgets on images, estimated by benchmarks/gpu_hours.py.
FULL_COSTS = Path(__file__).with_name("full_costs.json")


@dataclass(frozen=True)
class Variant:
    """One training: a recipe with some keys set, its place along the axis, and its series."""

    recipe: str
    settings: tuple[str, ...] = ()
    x: float | None = None
    series: str = ""
    more_seeds: tuple[int, ...] = ()  # besides the common seeds, unless the caller chooses

    @property
    def name(self) -> str:
        """Return the name of its run directory, without the seed."""
        marks = [self.recipe] if self.x is None else [self.recipe, f"{self.x:g}"]
        return "-".join([*marks, *re.findall(r"[\w.]+", self.series, re.ASCII)])


@dataclass(frozen=True)
class Reduction:
    """The part that a smaller budget leaves out."""

    settings: tuple[str, ...] = ()  # besides those of the recipe's own budget
    seeds: tuple[int, ...] = (1,)
    variants: tuple[Variant, ...] | None = None  # instead of the paper's
    cost: str = ""  # measured
    instead: str = ""  # network and data, where they are not those of the paper


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, and the check of rows: a verdict, or a consistency check of a definition."""

    text: str
    published: str
    check: Callable[[Sequence[Outcome]], Finding]
    also: tuple[str, ...] = ()  # further results whose rows it compares with, in the ledger alone


@dataclass(frozen=True)
class Earlier:
    """Results dated before a day, and how they were trained otherwise than the definition says today."""

    before: str  # a date like 2026-11-18
    note: str


@dataclass(frozen=True)
class Trained:
    """Finished trainings, and the outcome of each."""

    trials: Sequence[tuple[Variant, Trial]]
    outcomes: Sequence[Outcome]


# Draw files with a base name.
Draw = Callable[[Trained, Path], list[Path]]


def networks_of(trials: Sequence[tuple[Variant, Trial]]) -> str:
    """Describe the size of the networks that are trained, beside those of the full budgets."""
    full = {variant.recipe: read_recipe(variant.recipe) for variant, _ in trials}
    return network_sizes((trial.recipe, full[variant.recipe]) for variant, trial in trials)


@dataclass(frozen=True)
class Reproduction:
    """A table or figure of the paper; one without variants is drawn from formulas alone."""

    name: str
    summary: str
    variants: tuple[Variant, ...]
    draw: Draw
    budgets: Mapping[BudgetName, Reduction] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    shown: tuple[str, ...] = ()  # keys of recipes whose values the drawing needs
    earlier: Earlier | None = None

    def at(self, budget: BudgetName | None) -> Reduction:
        """Return what a budget leaves out."""
        if budget not in (None, *BUDGETS):
            raise InputError(f"{self.name}: no budget {budget!r}; it has: {', '.join(BUDGETS)}")
        return self.budgets.get(budget or "full", Reduction())

    def trials(
        self,
        output: Path,
        budget: BudgetName | None,
        seeds: Sequence[int] | None = None,
        settings: Sequence[str] = (),
    ) -> list[tuple[Variant, Trial]]:
        """Return every variant with every seed; further settings apply to all of them."""
        reduction = self.at(budget)
        variants = self.variants if reduction.variants is None else reduction.variants
        self._refuse_fixed(settings, variants)
        chosen = [
            (variant, seed)
            for variant in variants
            for seed in seeds or (*reduction.seeds, *variant.more_seeds)
        ]
        return [
            (variant, _trial(variant, output, budget, [*reduction.settings, *settings], seed))
            for variant, seed in chosen
        ]

    def _refuse_fixed(self, settings: Sequence[str], variants: Sequence[Variant]) -> None:
        """Raise for a setting that distinguishes the trainings, because it cannot apply to all of them."""
        fixed = {_key(setting) for variant in variants for setting in variant.settings} | set(self.shown)
        for key in map(_key, settings):
            if any(f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}.") for other in fixed):
                raise InputError(f"--set {key}: {self.name} sets it itself; `lipcert sweep` varies anything")

    def seeds(self, budget: BudgetName | None) -> list[int]:
        """Return the seeds that occur unless the caller chooses."""
        reduction = self.at(budget)
        variants = self.variants if reduction.variants is None else reduction.variants
        return sorted({*reduction.seeds, *(seed for variant in variants for seed in variant.more_seeds)})

    def networks(self, budget: BudgetName) -> str:
        """Describe the size of the networks at a budget, as `networks_of` does."""
        return networks_of(self.trials(Path(), budget))

    def older(self, date: str) -> str:
        """Say how results of this date were trained otherwise than today; empty if they were not."""
        return self.earlier.note if self.earlier is not None and date < self.earlier.before else ""

    def cost(self, budget: BudgetName) -> str:
        """Say how many trainings of how many epochs there are, and how long they took."""
        reduction = self.at(budget)
        variants = self.variants if reduction.variants is None else reduction.variants
        if not variants:
            return "drawn from formulas, no training"
        recipes = {variant.recipe for variant in variants}
        epochs = sorted({read_recipe(name, budget, reduction.settings).train.epochs for name in recipes})
        span = f"{epochs[0]}" if len(epochs) == 1 else f"{epochs[0]} to {epochs[-1]}"
        count = sum(len(reduction.seeds) + len(variant.more_seeds) for variant in variants)
        measured = reduction.cost or (self._full_cost() if budget == "full" else "")
        return f"{count} × {span} epochs" + (f", {measured}" if measured else "")

    def _full_cost(self) -> str:
        """Say how long the trainings of the full budget take, if that was estimated."""
        hours = json.loads(FULL_COSTS.read_text(encoding="utf-8")).get(self.name)
        return (
            ""
            if hours is None
            else f"about {hours:g} hours of an A100 by an estimate, certificates not included"
        )


REPRODUCTIONS: Registry[Reproduction] = Registry("reproduction", package="lipcert.paper")


def register(*reproductions: Reproduction) -> None:
    """Register reproductions by their names."""
    for each in reproductions:
        REPRODUCTIONS.register(each.name)(lambda found=each: found)


def _key(setting: str) -> str:
    return setting.partition("=")[0]


def _trial(
    variant: Variant, output: Path, budget: BudgetName | None, settings: Sequence[str], seed: int
) -> Trial:
    recipe = read_recipe(variant.recipe, budget, [*settings, *variant.settings, f"seed={seed}"])
    return Trial(output / f"{variant.name}-seed{seed}", recipe)
