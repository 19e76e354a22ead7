"""The leaderboard of bundled models: size, training time, clean and certified accuracy, command."""

from __future__ import annotations

from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.table import Table

from lipcert.certificates.loading import load
from lipcert.errors import InputError
from lipcert.models.trained import model_place, trained_models
from lipcert.recipes import Recipe, read_recipe
from lipcert.runs import Run
from lipcert.runs.rows import fraction, tightness_of

_BUDGETS = (None, "cpu", "smoke")


@dataclass(frozen=True)
class Entry:
    """One bundled model. Accuracies are fractions of the last split that was certified."""

    name: str
    data: str
    parameters: int
    seconds: float | None  # of training
    threads: int | None
    clean: float
    certified: dict[str, float]  # by radius, as printed
    tightness: float | None
    command: str

    @property
    def time(self) -> str:
        """Return the training time as text, with the number of threads."""
        if self.seconds is None:
            return "–"
        minutes = self.seconds / 60
        shown = f"{minutes / 60:.1f} h" if minutes >= 100 else f"{minutes:.0f} min"
        return shown if self.threads is None else f"{shown}, {_threads(self.threads)}"


def leaderboard() -> dict[str, list[Entry]]:
    """Return the bundled models per data set, sorted by certified accuracy at the first radius."""
    found: dict[str, list[Entry]] = {}
    for entry in map(_entry, trained_models()):
        found.setdefault(entry.data, []).append(entry)
    return {
        data: sorted(entries, key=lambda e: -next(iter(e.certified.values())))
        for data, entries in found.items()
    }


def cells(entries: list[Entry]) -> tuple[list[str], list[list[str]]]:
    """Return titles and one line per model of a data set; accuracies in percent."""
    radii = list(dict.fromkeys(radius for entry in entries for radius in entry.certified))
    titles = ["model", "parameters", "trained for", "clean", *radii, "tightness", "command"]
    lines = [
        [
            e.name,
            f"{e.parameters:,}",
            e.time,
            f"{100 * e.clean:.1f}",
            *(f"{100 * e.certified[r]:.1f}" if r in e.certified else "–" for r in radii),
            "–" if e.tightness is None else f"{100 * e.tightness:.0f}",
            e.command,
        ]
        for e in entries
    ]
    return titles, lines


def leaderboard_tables() -> list[Table]:
    """Return one table per data set for the terminal."""
    tables = []
    for data, entries in leaderboard().items():
        titles, lines = cells(entries)
        table = Table(
            title=data,
            box=SIMPLE_HEAD,
            caption="accuracies in %; under a radius: correct and certified within it, proved",
        )
        for title in titles:
            left, folds = title in ("model", "command"), title == "command"
            table.add_column(title, justify="left" if left else "right", overflow="fold", no_wrap=not folds)
        for line in lines:
            table.add_row(*line)
        tables.append(table)
    return tables


def _entry(name: str) -> Entry:
    run = Run(model_place(name))
    recipe, statement = read_recipe(str(run.recipe)), run.statement()
    split = list(statement.splits.values())[-1]
    return Entry(
        name=name,
        data=recipe.data.name,
        parameters=sum(p.numel() for p in load(run.path).parameters()),
        seconds=statement.seconds,
        threads=recipe.train.threads,
        clean=split.clean.value,
        certified={fraction(row.radius): row.value for row in split.certified},
        tightness=tightness_of(run),
        command=_command(recipe),
    )


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _command(recipe: Recipe) -> str:
    """Return the command that trains it, found by comparing with the bundled recipes."""
    for budget in _BUDGETS:
        for changed in ([], [f"seed={recipe.seed}"]):
            try:
                today = read_recipe(recipe.name, budget, changed)
            except InputError:  # no such recipe or budget
                continue
            if _training(today) == _training(recipe):
                options = [f"--budget {budget}"] if budget else []
                return " ".join(["lipcert train", recipe.name, *options, *(f"--set {c}" for c in changed)])
    return "lipcert train recipe.yaml"  # the file beside the weights


def _training(recipe: Recipe) -> Recipe:
    """Return the recipe without settings that change neither the weights nor the certificate."""
    train = recipe.train.model_copy(update={"threads": None, "checkpoint_every": 1, "validate_every": 0})
    return recipe.model_copy(update={"claim": "", "train": train, "certify": None})
