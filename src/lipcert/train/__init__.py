"""Train models: the loop, schedules, checkpoints, the run directory."""

from lipcert.train.hardware import Hardware
from lipcert.train.loop import fit
from lipcert.train.plan import Plan
from lipcert.train.schedules import SCHEDULES, Schedule
from lipcert.train.stacked.fitting import fit_stack

__all__ = ["SCHEDULES", "Hardware", "Plan", "Schedule", "fit", "fit_stack"]
