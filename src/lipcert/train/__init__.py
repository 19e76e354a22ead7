"""Training: the loop, schedules, checkpoints, the run directory."""

from lipcert.train.loop import Plan, fit
from lipcert.train.rundir import RunDirectory
from lipcert.train.schedules import SCHEDULES, Schedule

__all__ = ["SCHEDULES", "Plan", "RunDirectory", "Schedule", "fit"]
