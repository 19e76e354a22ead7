"""The content of `lipcert list`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.table import Table

from lipcert.errors import InputError


def listing(kind: str) -> list[Table]:
    """Return names and one line about each; for trained models one leaderboard per data set."""
    if kind not in KINDS:
        raise InputError(f"list: expected one of {', '.join(KINDS)}, got {kind!r}")
    if kind == "trained":
        from lipcert.report.leaderboard import leaderboard_tables

        return leaderboard_tables()
    table = Table("name", "what it is", title=kind)
    for name, summary in _LINES[kind]():
        table.add_row(name, summary)
    return [table]


Lines = Iterable[tuple[str, str]]


def _recipes() -> Lines:
    from lipcert.recipes import packaged_recipes, read_recipe

    return [(name, read_recipe(name).claim) for name in packaged_recipes()]


def _reproductions() -> Lines:
    from lipcert.paper import REPRODUCTIONS
    from lipcert.paper.definition import BUDGETS

    return [
        (r.name, "\n".join([r.summary, *(f"  {budget}: {r.cost(budget)}" for budget in BUDGETS)]))
        for r in REPRODUCTIONS.values()
    ]


def _layers() -> Lines:
    import lipcert.nn  # noqa: F401  registers lipcert's own layers
    from lipcert.bounds.contract import REFUSALS, RULES

    known = [(t.__name__, (type(r.rule).__doc__ or "").partition("\n")[0]) for t, r in RULES.items()]
    return sorted(known) + [(t.__name__, f"refused: {why}") for t, why in REFUSALS.items()]


def _losses() -> Lines:
    from lipcert.losses import LOSSES

    return [(name, LOSSES[name].summary) for name in LOSSES]


def _models() -> Lines:
    from lipcert.models import MODELS

    return [(name, MODELS[name].summary) for name in MODELS]


def _data() -> Lines:
    from lipcert.data import DATASETS

    return [(name, DATASETS[name].summary) for name in DATASETS]


def _schedules() -> Lines:
    from lipcert.train import SCHEDULES

    return [(name, SCHEDULES[name].summary) for name in SCHEDULES]


def _optimizers() -> Lines:
    from lipcert.train.optimizers import OPTIMIZERS

    return [(name, OPTIMIZERS[name].summary) for name in OPTIMIZERS]


_LINES: dict[str, Callable[[], Lines]] = {
    "recipes": _recipes,
    "reproductions": _reproductions,
    "losses": _losses,
    "layers": _layers,
    "models": _models,
    "data": _data,
    "schedules": _schedules,
    "optimizers": _optimizers,
}
KINDS = (*_LINES, "trained")
