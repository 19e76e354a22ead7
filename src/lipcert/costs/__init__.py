"""Estimate what a recipe costs before it is run: memory, operations, checkpoints, seconds."""

from lipcert.costs.estimate import Estimated, Part, estimate

__all__ = ["Estimated", "Part", "estimate"]
