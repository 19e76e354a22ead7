"""Attacks on our own certificates: foolbox's, one on the margin, and a search among the roundings."""

from lipcert.attack.band import BUDGETS, Band, attack

__all__ = ["BUDGETS", "Band", "attack"]
