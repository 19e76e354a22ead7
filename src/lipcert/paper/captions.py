"""Captions of figures: they say with what the numbers were found, read from the trainings themselves."""

from __future__ import annotations

from collections.abc import Sequence

from lipcert.paper.definition import Trained, networks_of


def caption(trained: Trained, network: str, *details: str, several: str = "{}") -> str:
    """Say what was trained and how often.

    `details` stand behind the epochs. `several` says what is shown of several seeds, such as "mean of {}".
    """
    recipes = [trial.recipe for _, trial in trained.trials]
    parts = [network, networks_of(trained.trials)]
    parts.append(_count(sorted({recipe.train.epochs for recipe in recipes}), "epoch"))
    seeds = len({recipe.seed for recipe in recipes})
    return f"{', '.join([*parts, *details])}; {several.format(f'{seeds} seeds') if seeds > 1 else 'one seed'}"


def _count(numbers: Sequence[int], what: str) -> str:
    """Write a number or the ends of a range.

    Example:
        >>> _count([1], "epoch"), _count([6], "epoch"), _count([6, 20], "epoch")
        ('1 epoch', '6 epochs', '6 to 20 epochs')
    """
    if numbers == [1]:
        return f"1 {what}"
    ends = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    return f"{ends} {what}s"
