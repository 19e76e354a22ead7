"""Recipes: one YAML per result, and the code that reads, checks and runs them."""

from lipcert.recipes.execution import execute, execute_stack
from lipcert.recipes.reading import packaged_recipes, read_recipe, read_run_recipe
from lipcert.recipes.schema import Recipe
from lipcert.recipes.stacking import read_stack

__all__ = [
    "Recipe",
    "execute",
    "execute_stack",
    "packaged_recipes",
    "read_recipe",
    "read_run_recipe",
    "read_stack",
]
