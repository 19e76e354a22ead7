"""Recipes: one YAML per result, and what reads, checks and runs them."""

from lipcert.recipes.execution import execute
from lipcert.recipes.reading import packaged_recipes, read_recipe
from lipcert.recipes.schema import Recipe

__all__ = ["Recipe", "execute", "packaged_recipes", "read_recipe"]
