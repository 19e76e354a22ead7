"""Tables and figures of the paper: which recipes to train, what to draw, what is claimed."""

from lipcert.paper import accuracy_tables, loss_layer_grid, parameter_figures, pareto, two_moons
from lipcert.paper.definition import Reproduction

_MODULES = (two_moons, accuracy_tables, parameter_figures, pareto, loss_layer_grid)
REPRODUCTIONS = {r.name: r for module in _MODULES for r in module.REPRODUCTIONS}

__all__ = ["REPRODUCTIONS", "Reproduction"]
