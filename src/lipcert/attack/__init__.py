"""Attacks on our own certificates: foolbox's, AutoAttack's, one on the margin, a search among roundings."""

from lipcert.attack.band import ATTACKS, BUDGETS, Band, BudgetName, attack

__all__ = ["ATTACKS", "BUDGETS", "Band", "BudgetName", "attack"]
