"""Define the tables and figures of the paper: recipes to train, pictures to draw, claims to check."""

from lipcert.paper import figures_4c3f, loss_layer_grid, paper_tables, pareto, two_moons
from lipcert.paper.definition import Reproduction

_MODULES = (two_moons, paper_tables, figures_4c3f, pareto, loss_layer_grid)
REPRODUCTIONS = {r.name: r for module in _MODULES for r in module.REPRODUCTIONS}

__all__ = ["REPRODUCTIONS", "Reproduction"]
