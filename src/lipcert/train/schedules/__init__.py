"""Schedules: a number as a function of its starting value and the fraction t of training done.

Fractions, not epochs, so that a schedule keeps its shape when a recipe's budget changes. Any number of
the loss or the optimiser can have one.
"""

from lipcert.train.schedules.base import SCHEDULES, Schedule

__all__ = ["SCHEDULES", "Schedule"]
