"""Run many trainings: grids over recipes, on processes of this machine or a cluster."""

from lipcert.sweeps.combinations import Sweep, lay_out, read_sweep
from lipcert.sweeps.crew import Crew, LocalCrew
from lipcert.sweeps.running import complete, run_trials
from lipcert.sweeps.trial import Trial

__all__ = [
    "Crew",
    "LocalCrew",
    "Sweep",
    "Trial",
    "complete",
    "lay_out",
    "read_sweep",
    "run_trials",
]
