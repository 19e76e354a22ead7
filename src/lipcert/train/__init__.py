"""Train models: the loop, schedules, checkpoints, the run directory."""

from lipcert.train.hardware import Hardware
from lipcert.train.loop import fit, fit_stack
from lipcert.train.plan import Plan
from lipcert.train.schedules import SCHEDULES, Schedule

__all__ = ["SCHEDULES", "Hardware", "Plan", "Schedule", "fit", "fit_stack"]
