"""The splits of data that one command needs, each loaded once."""

from __future__ import annotations

from lipcert.data import Dataset
from lipcert.data.base import Split
from lipcert.recipes.schema import Recipe


class Splits:
    """Loads a split when it is first asked for; recipes that name the same data share it."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[str, Split], Dataset] = {}

    def of(self, recipe: Recipe, split: Split) -> Dataset:
        """Return a split of a recipe's data."""
        key = (recipe.data.model_dump_json(), split)
        if key not in self._loaded:
            self._loaded[key] = recipe.make_data(split)
        return self._loaded[key]
