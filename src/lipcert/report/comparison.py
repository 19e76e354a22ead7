"""Show finished runs in the columns of the paper, each with the paper's row beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lipcert.certificates.certificate import RADII
from lipcert.data.base import shown_split
from lipcert.errors import InputError
from lipcert.recipes import Recipe, packaged_recipes, read_recipe
from lipcert.recipes.budgets import with_remark
from lipcert.report.method_names import is_published_size, method_of, model_of
from lipcert.report.published import PrintedRow, published
from lipcert.runs.rows import row_of
from lipcert.sweeps.trial import Trial
from lipcert.tables import Column, Table
from lipcert.tables.kinds import (
    CONSTANT,
    PERCENT,
    SECONDS,
    SETTING,
    TEXT,
    TIGHTNESS,
    printed_radius,
)
from lipcert.tables.table import Emphasis

DATA = {"cifar10": "cifar-10", "cifar100": "cifar-100", "tiny-imagenet": "tiny-imagenet"}


@dataclass(frozen=True)
class ComparedRow:
    """Hold what was run or what the paper prints; accuracies as fractions, None where nothing is known."""

    method: str
    model: str
    source: str
    eps: float | None
    slack: float | None
    epochs: int | None
    seed: int | None
    clean: float
    cra: tuple[float | None, ...]
    k_f: float | None
    k_hf: float | None
    tightness: float | None
    seconds: float | None
    is_printed: bool = False


def compare(runs: Sequence[Trial]) -> Table[ComparedRow]:
    """Lay out every finished run, and after it the paper's row if it has one."""
    rows: list[ComparedRow] = []
    radii = runs[0].recipe.certify.radii
    models = _models([run.recipe for run in runs])
    for run, model in zip(runs, models, strict=True):
        if run.recipe.certify.radii != radii:
            raise InputError(f"{run.path}: certified at other radii than {runs[0].path}")
        rows.append(_ours(run, model))
        rows += [row for row in _paper(run.recipe, model, radii) if row not in rows]
    note = f"accuracies in %, {_splits_shown(runs)}, with proved bounds; seconds: wall-clock time"
    note = with_remark(note, *(run.recipe.budget for run in runs))
    return Table(_columns(radii), rows, "comparison", note=note, emphasis=_emphasis)


def _columns(radii: Sequence[float]) -> list[Column[ComparedRow]]:
    return [
        Column("method", TEXT, lambda row: row.method),
        Column("model", TEXT, lambda row: row.model),
        Column("source", TEXT, lambda row: row.source),
        Column("ε", SETTING, lambda row: row.eps),
        Column("p", SETTING, lambda row: row.slack),
        Column("epochs", SETTING, lambda row: row.epochs),
        Column("seed", SETTING, lambda row: row.seed),
        Column("clean", PERCENT, lambda row: row.clean),
        *(_cra_column(i, radius) for i, radius in enumerate(radii)),
        Column("K_f", CONSTANT, lambda row: row.k_f),
        Column("K_hf", CONSTANT, lambda row: row.k_hf),
        Column("tightness", TIGHTNESS, lambda row: row.tightness),
        Column("seconds", SECONDS, lambda row: row.seconds),
    ]


def _cra_column(i: int, radius: float) -> Column[ComparedRow]:
    return Column(f"CRA {printed_radius(radius)}", PERCENT, lambda row: row.cra[i])


def _emphasis(row: ComparedRow) -> Emphasis:
    return "paper" if row.is_printed else ""


def _splits_shown(runs: Sequence[Trial]) -> str:
    """Name the splits that are shown, for a caption."""
    names = list(dict.fromkeys(shown_split(run.run.statement().splits) for run in runs))
    return f"on the {' and the '.join(names)} split{'s' if len(names) > 1 else ''}"


def _ours(run: Trial, model: str) -> ComparedRow:
    found, recipe = row_of(run.run), run.recipe
    split = shown_split(found.splits)
    return ComparedRow(
        method=method_of(recipe),
        model=model if is_published_size(recipe) else f"{model}, other size",
        source=run.path.name,
        eps=recipe.loss.arguments.get("eps"),
        slack=found.slack,
        epochs=recipe.train.epochs,
        seed=recipe.seed,
        clean=found.splits[split].clean,
        cra=tuple(found.splits[split].certified.values()),
        k_f=found.k_f,
        k_hf=found.k_hf,
        tightness=found.tightness,
        seconds=found.seconds,
    )


def _models(recipes: Sequence[Recipe]) -> list[str]:
    """Name the models as the packaged recipes at full budget: a thin network stands beside the full one."""
    packaged = {name: read_recipe(name) for name in {r.name for r in recipes} & set(packaged_recipes())}
    full = [packaged.get(recipe.name, recipe) for recipe in recipes]
    return [
        model_of(whole if whole.model.name == recipe.model.name else recipe)
        for whole, recipe in zip(full, recipes, strict=True)
    ]


def _paper(recipe: Recipe, model: str, radii: Sequence[float]) -> list[ComparedRow]:
    """Return the printed rows of the same method, model and ε that have one of these radii."""
    rows = published().tables.get(DATA.get(recipe.data.name, ""), [])
    eps = recipe.loss.arguments.get("eps")
    same = [r for r in rows if r.method == method_of(recipe) and r.model == model]
    same = [r for r in same if r.epsilon is None or r.epsilon == eps]
    return [_paper_row(row, radii) for row in same if any(_printed(radius, row) for radius in radii)]


def _paper_row(row: PrintedRow, radii: Sequence[float]) -> ComparedRow:
    return ComparedRow(
        method=row.method,
        model=row.model,
        source=f"paper, {row.source}" if row.source.startswith("report") else "paper",
        eps=row.epsilon,
        slack=row.slack,
        epochs=None,
        seed=None,
        clean=row.clean / 100,
        cra=tuple(_printed(radius, row) for radius in radii),
        k_f=row.k_f,
        k_hf=row.k_hf,
        tightness=None if row.tightness is None else row.tightness / 100,
        seconds=None,
        is_printed=True,
    )


def _printed(radius: float, row: PrintedRow) -> float | None:
    """Return the paper's certified accuracy at this very radius, as a fraction."""
    found = [value for at, value in zip(RADII, row.cra, strict=True) if abs(at - radius) < 1e-9]
    return found[0] / 100 if found and found[0] is not None else None
