"""The leaderboard of bundled models: size, training time, clean and certified accuracy, command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lipcert.certificates.loading import load
from lipcert.data.base import shown_split
from lipcert.errors import InputError
from lipcert.models.model_names import model_place
from lipcert.models.trained import trained_models
from lipcert.recipes import Recipe, read_recipe, read_run_recipe
from lipcert.report.method_names import method_of
from lipcert.runs import Run
from lipcert.runs.rows import row_of
from lipcert.tables import Column, Table
from lipcert.tables.grouping import grouped
from lipcert.tables.kinds import COUNT, PERCENT, SETTING, TEXT, TIGHTNESS, printed_radius, rough_duration

_BUDGETS = (None, "cpu", "smoke")


@dataclass(frozen=True)
class Entry:
    """One bundled model. Accuracies are fractions of the split that `shown_split` chooses."""

    name: str
    data: str
    method: str
    parameters: int
    seconds: float | None  # how long it was trained
    threads: int | None
    clean: float
    certified: Mapping[float, float]  # by radius
    tightness: float | None
    command: str

    @property
    def time(self) -> str | None:
        """Return the training time as text, with the number of threads."""
        if self.seconds is None:
            return None
        shown = rough_duration(self.seconds)
        return shown if self.threads is None else f"{shown}, {_threads(self.threads)}"


def leaderboard() -> dict[str, list[Entry]]:
    """Return the bundled models per data set, sorted by certified accuracy at the first radius."""
    found = grouped(map(_entry, trained_models()), lambda entry: entry.data)
    return {
        data: sorted(entries, key=lambda e: -next(iter(e.certified.values())))
        for data, entries in found.items()
    }


def leaderboard_table(data: str, entries: Sequence[Entry]) -> Table[Entry]:
    """Lay out one line per model of a data set."""
    radii = dict.fromkeys(radius for entry in entries for radius in entry.certified)
    columns = [
        Column("model", TEXT, lambda entry: entry.name),
        Column("parameters", COUNT, lambda entry: entry.parameters),
        Column("trained for", SETTING, lambda entry: entry.time),
        Column("clean", PERCENT, lambda entry: entry.clean),
        *(_cra_column(radius) for radius in radii),
        Column("tightness", TIGHTNESS, lambda entry: entry.tightness),
        Column("command", TEXT, lambda entry: entry.command),
    ]
    note = "accuracies in %; under a radius: correct and certified within it, proved"
    return Table(columns, entries, title=data, note=note)


def _cra_column(radius: float) -> Column[Entry]:
    return Column(printed_radius(radius), PERCENT, lambda entry: entry.certified.get(radius))


def _entry(name: str) -> Entry:
    run = Run(model_place(name))
    recipe, found = read_run_recipe(run), row_of(run)
    split = found.splits[shown_split(found.splits)]
    return Entry(
        name=name,
        data=recipe.data.name,
        method=method_of(recipe),
        parameters=sum(p.numel() for p in load(run.path, run.statement()).parameters()),
        seconds=found.seconds,
        threads=recipe.train.threads,
        clean=split.clean,
        certified=split.certified,
        tightness=found.tightness,
        command=_command(recipe),
    )


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _command(recipe: Recipe) -> str:
    """Return the command that trains it, found by comparing with the bundled recipes."""
    precision = recipe.train.precision
    fixed = [] if precision == "32" else [f"train.precision={precision}"]
    for budget in _BUDGETS:
        for changed in ([], [f"seed={recipe.seed}"]):
            try:
                today = read_recipe(recipe.name, budget, [*changed, *fixed])
            except InputError:  # no such recipe or budget
                continue
            if _training(today) == _training(recipe):
                options = [f"--budget {budget}"] if budget else []
                options += [f"--set {setting}" for setting in (*changed, *fixed)]
                return " ".join(["lipcert train", recipe.name, *options])
    return "lipcert train recipe.yaml"  # the file beside the weights


def _training(recipe: Recipe) -> Recipe:
    """Return the recipe without settings that change neither the weights nor the certificate."""
    train = recipe.train.model_copy(update={"threads": None, "checkpoint_every": 1, "validate_every": 0})
    return recipe.model_copy(update={"claim": "", "budget": None, "train": train, "certify": None})
