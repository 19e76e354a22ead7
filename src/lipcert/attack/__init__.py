"""Attack our own certificates: by foolbox, AutoAttack, the margin, and a search among rounding errors."""

from lipcert.attack.band import ATTACKS, BUDGETS, Band, BudgetName, attack

__all__ = ["ATTACKS", "BUDGETS", "Band", "BudgetName", "attack"]
