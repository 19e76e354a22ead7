"""Attacks on our own certificates, one per file: foolbox's, AutoAttack's, and two of our own."""

from lipcert.attack.band import BUDGETS, Band, attack
from lipcert.attack.base import ATTACKS, Attack, Nearest, WithinEps

__all__ = ["ATTACKS", "BUDGETS", "Attack", "Band", "Nearest", "WithinEps", "attack"]
